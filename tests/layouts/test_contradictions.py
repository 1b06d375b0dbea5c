# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""Checkpoints that no exporter writes on purpose: each is refused by what is wrong."""

import pytest
import torch

from .small import FAMILIES, REDUCED, TARGET, every_family, refusal, small

HIDDEN = 64


@every_family
@pytest.mark.parametrize("name", ["fc.weight", "midlayer.self_attn.o_proj.weight"])
def test_a_weight_that_is_not_there(family, name, tmp_path):
    draft = small(family)
    del draft.tensors[name]
    assert f"lacks {name}" in refusal(draft, tmp_path)


@every_family
@pytest.mark.parametrize("offset", [TARGET, -TARGET], ids=["above", "below"])
def test_an_id_that_the_target_does_not_have(family, offset, tmp_path):
    """A negative one would wrap around, to another id."""
    draft = small(family, {"t2d": "never"})
    draft.tensors["d2t"][0] = offset + 5 if offset < 0 else offset
    assert refusal(draft, tmp_path).startswith("d2t[0] maps draft id 0 to target id")


@every_family
def test_an_id_twice(family, tmp_path):
    draft = small(family, {"t2d": "never"})
    draft.tensors["d2t"][1] = draft.tensors["d2t"][0] - 1
    assert "both to target id" in refusal(draft, tmp_path)


@every_family
def test_offsets_in_a_dtype_that_cannot_hold_them(family, tmp_path):
    draft = small(family)
    draft.tensors["d2t"] = draft.tensors["d2t"].bfloat16()
    assert "d2t has dtype torch.bfloat16" in refusal(draft, tmp_path)


@every_family
@pytest.mark.parametrize("name", ["d2t", "lm_head.weight"])
def test_a_map_or_a_head_of_another_length(family, name, tmp_path):
    draft = small(family)
    draft.tensors[name] = draft.tensors[name][:-6]
    sentence = refusal(draft, tmp_path)
    assert sentence.startswith(name) and str(REDUCED - 6) in sentence


@every_family
def test_a_number_of_auxiliary_states_without_their_layers(family, tmp_path):
    """vLLM hands over three, whatever the number says."""
    draft = small(family, aux=4, keys={"num_aux_hidden_states": 4})
    assert "num_aux_hidden_states is 4" in refusal(draft, tmp_path)


def language_model(draft):
    """Its first layer behind own embeddings, reading no other model's states."""
    tensors = {"model.embed_tokens.weight": torch.rand(TARGET, HIDDEN)}
    for name in ("norm.weight", "lm_head.weight"):
        prefix = "" if name.startswith("lm_head") else "model."
        tensors[prefix + name] = draft.tensors[name]
    tensors["lm_head.weight"] = torch.rand(TARGET, HIDDEN)
    for name, value in draft.tensors.items():
        if not name.startswith("midlayer.") or "hidden_norm" in name:
            continue
        wide = value.ndim == 2 and value.shape[1] == 2 * HIDDEN and "down" not in name
        own = value[:, :HIDDEN] if wide else value
        tensors[name.replace("midlayer", "model.layers.0")] = own.clone()
    return tensors


@every_family
def test_a_plain_language_model(family, tmp_path):
    draft = small(family, draft_vocab=TARGET)
    draft.tensors = language_model(draft)
    assert refusal(draft, tmp_path).startswith("The draft is a plain language model")


@every_family
def test_an_eagle_1_head(family, tmp_path):
    draft = small(family, draft_vocab=TARGET)
    draft.tensors = language_model(draft)
    for name in ("model.norm.weight", "lm_head.weight"):
        del draft.tensors[name]
    draft.tensors["fc.weight"] = torch.rand(HIDDEN, 2 * HIDDEN)
    assert refusal(draft, tmp_path).startswith("The draft is an EAGLE-1 head")


@pytest.mark.parametrize(
    ("said", "held"), [(a, b) for a in FAMILIES for b in FAMILIES if a != b]
)
def test_layers_of_another_family(said, held, tmp_path):
    draft = small(said)
    draft.tensors = small(held).tensors
    assert "ForCausalLM" in refusal(draft, tmp_path)

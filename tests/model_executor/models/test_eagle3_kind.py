# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""Checkpoints that are no draft of the family that would serve them, in one sentence.

Also flags without their tensors, tensors without their flags, and files that break off.
"""

from pathlib import Path

import pytest
import torch

from tests.support.checkpoints import (
    FAMILIES,
    HIDDEN,
    INTERMEDIATE,
    TARGET_VOCAB,
    write_checkpoint,
)
from tests.support.drafts import load_draft

every_family = pytest.mark.parametrize("family", FAMILIES)

CLASSES = {
    "llama": "Eagle3LlamaForCausalLM",
    "qwen3": "Eagle3Qwen3ForCausalLM",
    "deepseek": "Eagle3DeepseekV2ForCausalLM",
}


def as_language_model(draft, layers=2):
    """The same attention in a model that reads no other model's hidden states."""
    first = {
        name.removeprefix("midlayer."): value
        for name, value in draft.tensors.items()
        if name.startswith("midlayer.") and "hidden_norm" not in name
    }
    tensors = {
        "model.embed_tokens.weight": torch.rand(TARGET_VOCAB, HIDDEN),
        "model.norm.weight": torch.ones(HIDDEN),
        "lm_head.weight": torch.rand(TARGET_VOCAB, HIDDEN),
    }
    for index in range(layers):
        for name, value in first.items():
            reads_both = value.ndim == 2 and value.shape[1] == 2 * HIDDEN
            halved = value[:, :HIDDEN] if reads_both else value
            tensors[f"model.layers.{index}.{name}"] = halved.clone()
    # Of 256 features that are no two hidden states.
    down = torch.rand(HIDDEN, INTERMEDIATE)
    for index in range(layers):
        tensors[f"model.layers.{index}.mlp.down_proj.weight"] = down.clone()
    return tensors


@every_family
@pytest.mark.parametrize("num_hidden_layers", [1, 2])
def test_a_plain_language_model_is_called_one(make_draft, family, num_hidden_layers):
    draft = make_draft(family, num_hidden_layers=num_hidden_layers)
    draft.tensors = as_language_model(draft)
    sentence = draft.refusal()
    assert sentence.startswith("The draft is a plain language model: its checkpoint")
    assert '"method": "draft_model"' in sentence


@every_family
def test_an_eagle_1_head_is_called_one(make_draft, family):
    draft = make_draft(family)
    draft.tensors = as_language_model(draft, layers=1)
    del draft.tensors["model.norm.weight"], draft.tensors["lm_head.weight"]
    draft.tensors["fc.weight"] = torch.rand(HIDDEN, 2 * HIDDEN)
    sentence = draft.refusal()
    assert sentence.startswith("The draft is an EAGLE-1 head")
    assert '"method": "eagle"' in sentence


@pytest.mark.parametrize(
    ("tensors", "config"),
    [(a, b) for a in FAMILIES for b in FAMILIES if a != b],
)
def test_a_draft_of_another_family_names_the_right_class(make_draft, tensors, config):
    draft = make_draft(config)
    draft.tensors = make_draft(tensors).tensors
    sentence = draft.refusal()
    assert sentence.startswith("The draft checkpoint holds midlayer.self_attn.")
    assert sentence.endswith(
        f"as drafts of {CLASSES[tensors]} do, but its config leads to "
        f"{CLASSES[config]}. Set architectures: [{CLASSES[tensors]}] in the draft's "
        "config."
    )


# Flags and tensors.

NORMS = {
    "norm_before_fc": {"input_norm.weight": 3 * HIDDEN},
    "fc_norm": {f"fc_norm.{index}.weight": HIDDEN for index in range(3)},
}


@every_family
@pytest.mark.parametrize("key", NORMS)
def test_a_flag_without_its_tensors_names_the_key(make_draft, family, key):
    sentence = make_draft(family, **{key: True}).refusal()
    assert sentence.startswith(f"The draft checkpoint lacks {', '.join(NORMS[key])}.")
    assert sentence.endswith(
        f"re-export the draft, or set {key}, which is true, to false in the draft's "
        "config."
    )


@every_family
@pytest.mark.parametrize("key", NORMS)
def test_tensors_without_their_flag_name_the_key(make_draft, family, key):
    draft = make_draft(family)
    draft.tensors |= {name: torch.ones(size) for name, size in NORMS[key].items()}
    sentence = draft.refusal()
    assert sentence.startswith(f"The draft checkpoint holds {', '.join(NORMS[key])}, ")
    assert sentence.endswith(f"Set {key}: true in the draft's config.")


@every_family
def test_a_norm_too_many_names_the_layers(make_draft, family):
    draft = make_draft(family, fc_norm=True)
    for index in range(4):
        draft.tensors[f"fc_norm.{index}.weight"] = torch.ones(HIDDEN)
    sentence = draft.refusal()
    assert "fc_norm is one norm for each of 3 auxiliary hidden states" in sentence
    assert "[2, 4, 5] (eagle_aux_hidden_state_layer_ids)" in sentence


# Files.


@pytest.mark.parametrize("kept", [4, 1000, -8])
def test_a_file_that_breaks_off_is_refused(make_draft, kept):
    draft = make_draft("llama")
    write_checkpoint(draft.folder, draft.config, draft.tensors)
    file = draft.folder / "model.safetensors"
    file.write_bytes(file.read_bytes()[:kept])
    with pytest.raises(ValueError, match="^The draft checkpoint cannot be read"):
        load_draft(draft.folder)


@pytest.mark.parametrize("fault", ["breaks off", "runs code"])
def test_a_pickle_that_breaks_off_or_runs_code_is_refused(make_draft, fault):
    draft = make_draft("llama")
    write_checkpoint(draft.folder, draft.config, {})
    file = draft.folder / "pytorch_model.bin"
    if fault == "runs code":
        torch.save(draft.tensors | {"code": Path("runs when read")}, file)
    else:
        torch.save(draft.tensors, file)
        file.write_bytes(file.read_bytes()[:2000])
    with pytest.raises(ValueError) as refused:
        load_draft(draft.folder)
    sentence = str(refused.value)
    assert sentence.startswith("The draft checkpoint cannot be read")
    assert "\n" not in sentence and "weights_only" not in sentence
    assert ("holds more than tensors" in sentence) == (fault == "runs code")


def test_no_file_at_all_is_refused(make_draft):
    draft = make_draft("llama")
    draft.tensors = {}
    assert draft.refusal().startswith("The draft checkpoint cannot be read")

# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""Drafts that quantise the key-value cache and nothing else."""

import json

import pytest
import torch

from tests.support.checkpoints import HIDDEN
from tests.support.quantisation import compressed_tensors, quantised_modules

from .test_eagle3_quant_drafts import (
    CACHE_SCHEME,
    MODELOPT,
    built,
    every_family,
    refused,
)


def scales(model):
    parameters = dict(model.named_parameters())
    leaves = ("k_scale", "v_scale")
    return {n[-7:]: p.item() for n, p in parameters.items() if n.endswith(leaves)}


@every_family
def test_a_quantised_cache_alone_of_compressed_tensors(make_draft, family, caplog):
    """In this format vLLM takes no scales for latent attention, which is said."""
    keys = {"config_groups": {}, "kv_cache_scheme": CACHE_SCHEME}
    config = compressed_tensors("fp8", **keys)
    draft = make_draft(family, quantization_config=config)
    for leaf in ("k_scale", "v_scale"):
        draft.tensors[f"midlayer.self_attn.{leaf}"] = torch.tensor([0.5])
    model = built(draft)
    assert not quantised_modules(model)
    latent = family == "deepseek"
    assert scales(model) == ({} if latent else {"k_scale": 0.5, "v_scale": 0.5})
    assert ("does not use: midlayer.self_attn.k_scale" in caplog.text) == latent


FP8_CACHE = {
    "config.json": {"quant_method": "modelopt", "kv_cache_scheme": CACHE_SCHEME},
    "hf_quant_config.json": MODELOPT
    | {"quantization": {"quant_algo": None, "kv_cache_quant_algo": "FP8"}},
}


def with_modelopts_scales(draft):
    for part, value in (("k", 0.5), ("v", 0.25)):
        scale = torch.tensor(value)
        draft.tensors[f"midlayer.self_attn.{part}_proj.{part}_scale"] = scale
    return draft


@every_family
@pytest.mark.parametrize("file", FP8_CACHE)
def test_a_quantised_cache_alone_of_modelopt(make_draft, family, file):
    """It takes the scales, and leaves all weights as they are."""
    keys = FP8_CACHE[file]
    inside = {"quantization_config": keys} if file == "config.json" else {}
    draft = with_modelopts_scales(make_draft(family, **inside))
    if not inside:
        (draft.write() / file).write_text(json.dumps(keys))
    model = built(draft)
    assert not quantised_modules(model)
    assert scales(model) == {"k_scale": 0.5, "v_scale": 0.25}
    head = draft.tensors["lm_head.weight"].bfloat16()
    assert torch.equal(model.lm_head.weight, head)


@every_family
@pytest.mark.parametrize(("half", "other"), [("k", "v"), ("v", "k")])
def test_half_of_the_scales_of_modelopt_is_refused(make_draft, family, half, other):
    keys = {"quantization_config": FP8_CACHE["config.json"]}
    draft = with_modelopts_scales(make_draft(family, **keys))
    del draft.tensors[f"midlayer.self_attn.{other}_proj.{other}_scale"]
    assert refused(draft).startswith(
        f"The draft checkpoint holds midlayer.self_attn.{half}_proj.{half}_scale, but "
        f"no {other}_scale for that layer."
    )


def test_a_quantised_cache_alone_is_served(make_draft):
    """Before a cache that is not quantised its scales change nothing."""
    states = torch.ones(2, HIDDEN)
    expected = make_draft("llama").load().compute_logits(states)
    keys = {"quantization_config": FP8_CACHE["config.json"]}
    model = with_modelopts_scales(make_draft("llama", **keys)).load()
    assert torch.equal(model.compute_logits(states), expected)


@pytest.mark.parametrize(
    "keys", [{"kv_cache_quant_algo": "INT8"}, {"kv_cache_scheme": {"type": "int"}}]
)
def test_a_cache_whose_scales_mean_something_else_is_refused(make_draft, keys):
    keys = {"quantization_config": MODELOPT | {"quantization": keys}}
    sentence = refused(with_modelopts_scales(make_draft("llama", **keys)))
    assert sentence.startswith("The draft's quantization_config quantises the cache")
    assert "FP8, NVFP4" in sentence

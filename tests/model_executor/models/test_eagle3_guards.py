# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""What stock vLLM does right with a draft's config, kept right."""

import math

import pytest
import torch

from tests.support.checkpoints import (
    FAMILIES,
    HIDDEN,
    TARGET_VOCAB,
    target_config,
)

from .test_eagle3_cases import as_speculators

every_family = pytest.mark.parametrize("family", FAMILIES)
gqa_family = pytest.mark.parametrize("family", ["llama", "qwen3"])

THETA = 50_000.0
LLAMA3 = {
    "rope_type": "llama3",
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 64,
}


def frequencies(size, scaled):
    """Inverse wavelengths per position, by the papers' formulas."""
    plain = THETA ** -(torch.arange(0, size, 2, dtype=torch.float64) / size)
    if not scaled:
        return plain
    wavelengths = 2 * math.pi / plain
    context = LLAMA3["original_max_position_embeddings"]
    low, high = LLAMA3["low_freq_factor"], LLAMA3["high_freq_factor"]
    smooth = ((context / wavelengths - low) / (high - low)).clamp(0, 1)
    return plain * (smooth + (1 - smooth) / LLAMA3["factor"])


def rotations(model):
    """`[positions, size / 2]` cosines that the first layer rotates by."""
    rotary = model.model.layers[0].self_attn.rotary_emb
    return rotary.cos_sin_cache.chunk(2, dim=-1)[0]


PLAIN_ROPE = [
    {"rope_theta": THETA},
    {"rope_parameters": {"rope_type": "default", "rope_theta": THETA}},
]
# Latent attention knows yarn, not llama3.
LLAMA3_ROPE = [
    {"rope_theta": THETA, "rope_scaling": LLAMA3},
    {"rope_parameters": LLAMA3 | {"rope_theta": THETA}},
]


@pytest.mark.parametrize(
    ("family", "keys", "scaled"),
    [(family, keys, False) for family in FAMILIES for keys in PLAIN_ROPE]
    + [(family, keys, True) for family in ("llama", "qwen3") for keys in LLAMA3_ROPE],
)
def test_rope_in_every_spelling(make_draft, family, keys, scaled):
    cosines = rotations(make_draft(family, **keys).load())
    angles = torch.arange(100)[:, None] * frequencies(2 * cosines.shape[-1], scaled)
    torch.testing.assert_close(cosines[:100], angles.cos().float(), atol=1e-5, rtol=0)


@every_family
def test_a_null_theta_is_an_absent_one(make_draft, family):
    absent = rotations(make_draft(family).load())
    assert torch.equal(rotations(make_draft(family, rope_theta=None).load()), absent)


@gqa_family
def test_rope_nested_in_speculators_format(make_draft, family):
    draft = make_draft(family)
    draft.config = as_speculators(draft.config | {"rope_theta": THETA})
    cosines = rotations(draft.load())
    angles = torch.arange(100)[:, None] * frequencies(2 * cosines.shape[-1], False)
    torch.testing.assert_close(cosines[:100], angles.cos().float(), atol=1e-5, rtol=0)


@every_family
def test_positions_reach_as_far_as_the_target_serves(make_draft, family):
    """Trained on less: no position may be out of bounds."""
    draft = make_draft(family, max_position_embeddings=64)
    assert len(rotations(draft.load())) >= 512


@gqa_family
def test_positions_of_a_config_that_does_not_state_them(make_draft, family):
    """Speculators saves what differs from its defaults, and vLLM fills in nothing."""
    draft = make_draft(family, max_position_embeddings=...)
    draft.config = as_speculators(draft.config)
    assert len(rotations(draft.load())) == 512


@every_family
def test_a_target_with_its_own_embeddings_leaves_the_drafts_alone(make_draft, family):
    draft = make_draft(family)
    draft.tensors["embed_tokens.weight"] = torch.randn(TARGET_VOCAB, HIDDEN)
    model = draft.load()
    assert model.has_own_embed_tokens and model.has_own_lm_head
    embedded = model.embed_input_ids(torch.arange(TARGET_VOCAB))
    assert torch.equal(embedded, draft.tensors["embed_tokens.weight"])


def rms_norm(states, weight):
    return states * (states.square().mean(-1, keepdim=True) + 1e-6).rsqrt() * weight


@every_family
@pytest.mark.parametrize("nested", [False, True])
@pytest.mark.parametrize("each", [False, True])
def test_auxiliary_states_are_normed_and_combined(make_draft, family, nested, each):
    """Stock knows `norm_before_fc` in two families; here all have it."""
    key = {"norm_before_fc": True}
    keys = {"eagle_config": key} if nested else key
    draft = make_draft(family, fc_norm=each, **keys)
    joint = torch.rand(3 * HIDDEN) + 0.5
    single = torch.rand(3, HIDDEN) + 0.5
    draft.tensors["input_norm.weight"] = joint
    if each:
        draft.tensors |= {f"fc_norm.{i}.weight": single[i] for i in range(3)}
    states = torch.randn(4, 3 * HIDDEN)
    expected = rms_norm(states, joint)
    if each:
        expected = rms_norm(expected.view(4, 3, HIDDEN), single).flatten(1)
    expected = expected @ draft.tensors["fc.weight"].T
    combined = draft.load().combine_hidden_states(states)
    torch.testing.assert_close(combined, expected, atol=1e-4, rtol=1e-4)
    one = draft.load().combine_hidden_states(states[0])
    torch.testing.assert_close(one, expected[0], atol=1e-4, rtol=1e-4)


# Quantisation: the draft's own, by the names in its checkpoint.


def int8(ignore):
    def numbers(**changes):
        return {"num_bits": 8, "type": "int", "symmetric": True, **changes}

    return {
        "quant_method": "compressed-tensors",
        "format": "int-quantized",
        "quantization_status": "compressed",
        "ignore": ignore,
        "config_groups": {
            "group_0": {
                "targets": ["Linear"],
                "weights": numbers(strategy="channel", dynamic=False),
                "input_activations": numbers(strategy="token", dynamic=True),
            }
        },
    }


def quantise(draft, names):
    """Round the named matrices to int8, a scale a row; return the rounded values."""
    rounded = {}
    for name in names:
        matrix = draft.tensors[f"{name}.weight"]
        scale = matrix.abs().amax(1, keepdim=True) / 127
        draft.tensors[f"{name}.weight"] = (matrix / scale).round().to(torch.int8)
        draft.tensors[f"{name}.weight_scale"] = scale
        rounded[name] = draft.tensors[f"{name}.weight"] * scale
    return rounded


def projections(draft):
    """Of attention and MLP, less latent attention's `kv_b_proj`, which is absorbed."""
    return [
        name.removesuffix(".weight")
        for name, value in draft.tensors.items()
        if name.startswith("midlayer.") and value.ndim == 2 and "kv_b_proj" not in name
    ]


def quantised_modules(model):
    return {
        name.removeprefix("model.")
        for name, module in model.named_modules()
        if getattr(module, "scheme", None) is not None
    }


@every_family
def test_a_quantised_draft_computes_like_its_rounded_weights(make_draft, family):
    draft = make_draft(
        family,
        quantization_config=int8(["lm_head", "re:.*kv_b_proj"]),
    )
    rounded = quantise(draft, [*projections(draft), "fc"])
    model = draft.load(engine={"dtype": "bfloat16"})
    found = quantised_modules(model)
    assert "fc" in found and "lm_head" not in found
    assert {"layers.0.self_attn.o_proj", "layers.0.mlp.gate_up_proj"} <= found
    states = torch.randn(4, 3 * HIDDEN, dtype=torch.bfloat16)
    expected = states.float() @ rounded["fc"].T
    combined = model.combine_hidden_states(states)
    # Activations are rounded to 8 bits as well.
    error = (combined.float() - expected).norm() / expected.norm()
    assert error < 0.02


@gqa_family
@pytest.mark.parametrize("layer", ["midlayer", "layers.0", "model.layers.0"])
def test_modules_are_ignored_by_their_checkpoint_names(make_draft, family, layer):
    kept = [f"{layer}.self_attn.{name}_proj" for name in "qkv"]
    draft = make_draft(
        family,
        quantization_config=int8(["lm_head", "fc", f"{layer}.mlp.down_proj", *kept]),
    )
    quantise(
        draft,
        [
            "midlayer.self_attn.o_proj",
            "midlayer.mlp.gate_proj",
            "midlayer.mlp.up_proj",
        ],
    )
    found = quantised_modules(draft.load())
    assert found == {"layers.0.self_attn.o_proj", "layers.0.mlp.gate_up_proj"}


@every_family
def test_a_missing_scale_is_refused(make_draft, family):
    draft = make_draft(
        family, quantization_config=int8(["lm_head", "fc", "re:.*kv_b_proj"])
    )
    quantise(draft, projections(draft))
    del draft.tensors["midlayer.mlp.up_proj.weight_scale"]
    sentence = draft.refusal()
    assert sentence.startswith(
        "The draft checkpoint lacks midlayer.mlp.up_proj.weight_scale."
    )


@every_family
def test_a_quantised_target_leaves_the_draft_alone(make_draft, family):
    target = target_config(quantization_config=int8(["lm_head"]))
    model = make_draft(family).load(target)
    assert quantised_modules(model) == set()
    assert model.quant_config is None

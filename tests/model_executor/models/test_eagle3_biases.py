# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""Biases: never dropped, never uninitialised, whatever config and file say of them."""

import logging

import pytest
import torch

from tests.support.checkpoints import FAMILIES, HIDDEN, INTERMEDIATE

every_family = pytest.mark.parametrize("family", FAMILIES)
gqa_family = pytest.mark.parametrize("family", ["llama", "qwen3"])

ATTENTION = {
    "self_attn.q_proj": HIDDEN,
    "self_attn.k_proj": HIDDEN // 2,
    "self_attn.v_proj": HIDDEN // 2,
    "self_attn.o_proj": HIDDEN,
}
MLP = {
    "mlp.gate_proj": INTERMEDIATE,
    "mlp.up_proj": INTERMEDIATE,
    "mlp.down_proj": HIDDEN,
}


def add_biases(draft, sizes, layer="midlayer"):
    """Random biases for the modules of `sizes`; returns them by module."""
    biases = {module: torch.randn(size) for module, size in sizes.items()}
    draft.tensors |= {f"{layer}.{name}.bias": bias for name, bias in biases.items()}
    return biases


def apply(model, module, layer=0):
    """A projection of `layer` on fixed inputs, `[4, inputs]`, and these inputs."""
    projection = model.model.layers[layer].get_submodule(module)
    inputs = torch.randn(4, projection.input_size)
    output = projection(inputs)
    return inputs, output[0] if isinstance(output, tuple) else output


def assert_linear(model, module, weights, biases):
    inputs, outputs = apply(model, module)
    expected = inputs @ torch.cat(weights).T + torch.cat(biases)
    torch.testing.assert_close(outputs, expected, atol=1e-4, rtol=1e-4)


def weights_of(draft, *modules):
    return [draft.tensors[f"midlayer.{module}.weight"] for module in modules]


QKV = ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj")


@pytest.mark.parametrize(
    ("family", "keys"),
    [
        ("llama", {"attention_bias": True}),
        ("llama", {"bias": True}),
        ("llama", {"attention_bias": False}),
        ("qwen3", {"qkv_bias": True}),
        ("qwen3", {"attention_bias": False}),
    ],
)
def test_biases_of_q_k_v_alone(make_draft, family, keys, eagle3_log):
    """As Qwen2's; `o_proj` then has none, not one that nobody has filled."""
    draft = make_draft(family, **keys)
    biases = add_biases(draft, {name: ATTENTION[name] for name in QKV})
    model = draft.load()
    found = [biases[name] for name in QKV]
    assert_linear(model, "self_attn.qkv_proj", weights_of(draft, *QKV), found)
    assert model.model.layers[0].self_attn.o_proj.bias is None
    said = [line for line in eagle3_log(logging.INFO) if "holds biases" in line]
    assert len(said) == (keys == {"attention_bias": False})


@gqa_family
@pytest.mark.parametrize("keys", [{"attention_bias": True, "mlp_bias": True}, {}])
def test_biases_of_every_projection(make_draft, family, keys):
    draft = make_draft(family, **keys)
    biases = add_biases(draft, ATTENTION | MLP)
    model = draft.load()
    found = [biases[name] for name in QKV]
    assert_linear(model, "self_attn.qkv_proj", weights_of(draft, *QKV), found)
    for name in ("self_attn.o_proj", "mlp.down_proj"):
        assert_linear(model, name, weights_of(draft, name), [biases[name]])
    gate_up = ("mlp.gate_proj", "mlp.up_proj")
    found = [biases[name] for name in gate_up]
    assert_linear(model, "mlp.gate_up_proj", weights_of(draft, *gate_up), found)


def test_latent_attention_takes_the_biases_that_it_can(make_draft, eagle3_log):
    draft = make_draft("deepseek", attention_bias=True)
    sizes = MLP | {"self_attn.o_proj": HIDDEN}
    biases = add_biases(draft, sizes)
    model = draft.load()
    for name in ("self_attn.o_proj", "mlp.down_proj"):
        assert_linear(model, name, weights_of(draft, name), [biases[name]])
    (said,) = (line for line in eagle3_log(logging.INFO) if "holds biases" in line)
    assert "down_proj, gate_proj, o_proj, up_proj" in said


def test_latent_attention_refuses_the_biases_that_it_cannot(make_draft):
    draft = make_draft("deepseek", attention_bias=True)
    names = ["q_a_proj", "kv_a_proj_with_mqa", "kv_b_proj"]
    add_biases(draft, {f"self_attn.{name}": 64 for name in names})
    sentence = draft.refusal()
    assert all(f"midlayer.self_attn.{name}.bias" in sentence for name in names)
    assert "latent attention has no such bias" in sentence


@every_family
def test_a_bias_of_fc_is_used(make_draft, family):
    draft = make_draft(family)
    bias = draft.tensors["fc.bias"] = torch.randn(HIDDEN)
    states = torch.randn(4, 3 * HIDDEN)
    expected = states @ draft.tensors["fc.weight"].T + bias
    combined = draft.load().combine_hidden_states(states)
    torch.testing.assert_close(combined, expected, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize(
    ("family", "key", "where"),
    [
        ("llama", "attention_bias", "self_attn"),
        ("llama", "bias", "self_attn"),
        ("llama", "mlp_bias", "mlp"),
        ("qwen3", "qkv_bias", "self_attn"),
        ("qwen3", "mlp_bias", "mlp"),
        ("deepseek", "attention_bias", "self_attn"),
        ("deepseek", "mlp_bias", "mlp"),
    ],
)
def test_a_promised_bias_must_come(make_draft, family, key, where):
    assert make_draft(family, **{key: True}).refusal() == (
        f"{key} is true in the draft's config, but the checkpoint holds no bias of "
        f"{where}. Set {key} to false, or re-export the draft with its biases."
    )


@gqa_family
@pytest.mark.parametrize(
    ("shipped", "missing"),
    [
        ("self_attn.q_proj", "self_attn.k_proj.bias, midlayer.self_attn.v_proj.bias"),
        ("mlp.gate_proj", "mlp.up_proj.bias"),
    ],
)
def test_a_part_without_the_others_is_refused(make_draft, family, shipped, missing):
    draft = make_draft(family)
    add_biases(draft, {shipped: (ATTENTION | MLP)[shipped]})
    assert draft.refusal().startswith(f"The draft checkpoint lacks midlayer.{missing}.")


@gqa_family
def test_a_layer_without_the_biases_of_another_is_refused(make_draft, family):
    draft = make_draft(family, layers=2)
    add_biases(draft, ATTENTION)
    sentence = draft.refusal()
    assert "layers.1.self_attn.o_proj.bias" in sentence


@every_family
def test_biases_of_norms_are_left_out_or_refused(make_draft, family, eagle3_log):
    """Some exporters write zeros, whether the norms have biases or not."""
    draft, name = make_draft(family), "midlayer.hidden_norm.bias"
    draft.tensors[name] = torch.zeros(HIDDEN)
    draft.load()
    (warning,) = eagle3_log(logging.WARNING)
    assert name in warning
    draft.tensors[name] += 1
    sentence = draft.refusal()
    assert name in sentence and "norms have no bias" in sentence


def test_an_update_may_bring_a_bias_that_the_draft_has(make_draft):
    draft = make_draft("llama")
    add_biases(draft, ATTENTION)
    model, name, new = draft.load(), "self_attn.o_proj", torch.randn(HIDDEN)
    model.load_weights([(f"midlayer.{name}.bias", new)])
    assert_linear(model, name, weights_of(draft, name), [new])

# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""Configs as exporters really write them, each in every family that it concerns."""

import pytest
import torch

from .small import TARGET, every_family, gqa_family, refusal, serve, small

IDS = [1, 3, 5, 7, 8]
KEY = "eagle_aux_hidden_state_layer_ids"
SPELLINGS = pytest.mark.parametrize("first", ["midlayer", "layers.0"])


@every_family
@pytest.mark.parametrize("config", [None, {}], ids=["null", "empty"])
def test_a_quantisation_config_that_says_nothing(family, config, tmp_path):
    serve(small(family, keys={"quantization_config": config}), tmp_path)


@every_family
def test_a_config_without_architectures(family, tmp_path):
    """Its model type says enough."""
    serve(small(family, {"architectures": None}), tmp_path)


@pytest.mark.parametrize("kind", ["gpt_oss", "kimi_k2", "phi3", "qwen2"])
@pytest.mark.parametrize("keys", [{}, {"head_dim": ...}], ids=["all keys", "few keys"])
def test_llama_layers_under_the_type_of_the_target(kind, keys, tmp_path):
    """That type would bring its own defaults, of head sizes or windows say."""
    serve(small("llama", {"model_type": kind}, keys=keys), tmp_path)


@every_family
@SPELLINGS
def test_several_layers(family, first, tmp_path):
    serve(small(family, {"layer": first}, layers=3), tmp_path)


@every_family
@pytest.mark.parametrize(("said", "held"), [(40, 1), (1, 3)])
def test_another_number_of_layers_than_the_config_says(family, said, held, tmp_path):
    keys = {"num_hidden_layers": said}
    draft = small(family, layers=held, target_layers=40, keys=keys)
    sentence = refusal(draft, tmp_path)
    assert sentence.startswith(f"num_hidden_layers is {said} in the draft's config")
    assert f"Set num_hidden_layers to {held}." in sentence


@every_family
@pytest.mark.parametrize("layers", [10**6, 2**62])
def test_more_layers_than_any_memory_holds(family, layers, tmp_path):
    """Refused before the first of them is built."""
    sentence = refusal(small(family, keys={"num_hidden_layers": layers}), tmp_path)
    assert sentence.startswith(f"num_hidden_layers is {layers} in the draft's config")


BIAS_KEYS = [{"attention_bias": True}, {"bias": True}, {"qkv_bias": True}, {}]


@gqa_family
@pytest.mark.parametrize("keys", BIAS_KEYS, ids=str)
def test_biases_of_queries_keys_and_values(family, keys, tmp_path):
    """Honoured where the file has them, whatever the config says."""
    serve(small(family, further=("qkv_bias",), keys=keys), tmp_path)


@gqa_family
@pytest.mark.parametrize("keys", [{"attention_bias": True}, {}], ids=str)
def test_biases_of_the_whole_attention(family, keys, tmp_path):
    serve(small(family, further=("qkv_bias", "o_bias"), keys=keys), tmp_path)


@gqa_family
def test_biases_that_the_file_lacks(family, tmp_path):
    draft = small(family, keys={"attention_bias": True})
    assert "attention_bias" in refusal(draft, tmp_path)


@every_family
def test_biases_of_the_mlp(family, tmp_path):
    draft = small(family, keys={"mlp_bias": True})
    for name in ("gate_proj", "up_proj", "down_proj"):
        rows = draft.tensors[f"midlayer.mlp.{name}.weight"].shape[0]
        draft.tensors[f"midlayer.mlp.{name}.bias"] = torch.randn(rows)
    serve(draft, tmp_path)


@every_family
def test_biases_of_norms(family, tmp_path):
    draft = small(family)
    draft.tensors["norm.bias"] = torch.zeros(64)
    serve(draft, tmp_path)
    draft.tensors["norm.bias"][3] = 1.0
    assert "norm.bias" in refusal(draft, tmp_path)


@every_family
@pytest.mark.parametrize("aux", [1, 4, 5])
@pytest.mark.parametrize("nested", [False, True], ids=["top", "nested"])
def test_other_than_three_auxiliary_states(family, aux, nested, tmp_path):
    key = {KEY: IDS[:aux]}
    keys = {"eagle_config": key} if nested else key
    serve(small(family, aux=aux, keys=keys), tmp_path)


@every_family
def test_no_auxiliary_states(family, tmp_path):
    keys = {"eagle_config": {"use_aux_hidden_state": False, KEY: []}}
    serve(small(family, aux=0, keys=keys), tmp_path)


@every_family
def test_no_auxiliary_states_and_a_norm_too_few(family, tmp_path):
    """ModelOpt leaves hidden_norm out then; no draft layer can do without."""
    draft = small(family, aux=0, keys={"eagle_config": {"use_aux_hidden_state": False}})
    del draft.tensors["midlayer.hidden_norm.weight"]
    assert "midlayer.hidden_norm.weight" in refusal(draft, tmp_path)


@every_family
def test_fc_for_more_states_than_vllm_hands_over(family, tmp_path):
    sentence = refusal(small(family, aux=4), tmp_path)
    assert "fc.weight" in sentence or "hidden states" in sentence
    assert KEY in sentence


@every_family
@pytest.mark.parametrize("nested", [False, True], ids=["top", "nested"])
def test_a_norm_before_fc(family, nested, tmp_path):
    key = {"norm_before_fc": True}
    keys = {"eagle_config": key} if nested else key
    serve(small(family, further=("input_norm",), keys=keys), tmp_path)


@every_family
def test_a_norm_for_each_auxiliary_state(family, tmp_path):
    keys = {"fc_norm": True, "norm_output": True, "norm_before_residual": True}
    serve(small(family, further=("fc_norm",), keys=keys), tmp_path)


@every_family
@pytest.mark.parametrize(
    ("tensors", "key"), [("input_norm", "norm_before_fc"), ("fc_norm", "fc_norm")]
)
def test_a_norm_without_its_key_and_a_key_without_its_norm(
    family, tensors, key, tmp_path
):
    sentence = refusal(small(family, further=(tensors,)), tmp_path)
    assert tensors in sentence and key in sentence
    sentence = refusal(small(family, keys={key: True}), tmp_path)
    assert tensors in sentence


@every_family
def test_a_prefix_before_every_name(family, tmp_path):
    exporter = {"prefix": "model.", "layer": "layers.0", "embed": True}
    serve(small(family, exporter), tmp_path)


@gqa_family
def test_speculators_leaves_out_what_is_its_default(family, tmp_path):
    exporter = {"form": "eagle3", "layer": "layers.0", "embed": True}
    keys = {"speculators_config": {}, "norm_before_residual": ...}
    serve(small(family, exporter, keys=keys), tmp_path)


@every_family
@pytest.mark.parametrize("shape", [(1, 1, -1), (-1,), (3, -1)], ids=str)
def test_parallel_drafting(family, shape, tmp_path):
    draft = small(
        family, layers=2, further=("mask_hidden",), keys={"mask_token_id": TARGET - 1}
    )
    draft.tensors["mask_hidden"] = draft.tensors["mask_hidden"].reshape(shape)
    serve(draft, tmp_path)


@every_family
def test_parallel_drafting_with_a_mask_of_another_width(family, tmp_path):
    draft = small(family, further=("mask_hidden",), keys={"mask_token_id": 7})
    draft.tensors["mask_hidden"] = torch.zeros(1, 1, 64)
    sentence = refusal(draft, tmp_path)
    assert sentence.startswith("mask_hidden has 64 elements") and "192" in sentence


def test_qwen3_weights_under_llamas_name(tmp_path):
    draft = small("qwen3")
    draft.config |= {"architectures": ["LlamaForCausalLMEagle3"], "model_type": "llama"}
    assert "Eagle3Qwen3ForCausalLM" in refusal(draft, tmp_path)

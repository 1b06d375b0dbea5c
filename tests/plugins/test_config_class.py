# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""A draft's config is read as its architecture says, whatever its model type."""

import json
import pickle
from pathlib import Path
from typing import Any

import pytest
from vllm.config.speculative import SpeculativeConfig
from vllm.transformers_utils.config import get_config

KIMI_LLAMA = {
    "architectures": ["LlamaForCausalLMEagle3"],
    "model_type": "kimi_k2",
    "vocab_size": 1024,
    "draft_vocab_size": 256,
    "hidden_size": 7168,
    "intermediate_size": 256,
    "num_hidden_layers": 1,
    "num_attention_heads": 64,
    "eagle_config": {"eagle_aux_hidden_state_layer_ids": [2, 30, 58]},
}


@pytest.fixture
def read(tmp_path: Path):
    """The config of a draft as vLLM makes it from a file."""

    def from_file(config: dict[str, Any], **changes: Any) -> Any:
        stated = {k: v for k, v in (config | changes).items() if v is not None}
        (tmp_path / "config.json").write_text(json.dumps(stated))
        override = SpeculativeConfig.hf_config_override
        return get_config(str(tmp_path), False, hf_overrides_fn=override)

    return from_file


@pytest.mark.parametrize(
    "model_type",
    ["kimi_k2", "deepseek_v3", "gpt_oss", "phi3", "mistral", "gemma3_text"],
)
def test_llama_layers_have_no_defaults_of_the_target(read, model_type):
    config = read(KIMI_LLAMA, model_type=model_type)
    assert config.model_type == "llama"
    assert config.architectures == ["LlamaForCausalLMEagle3"]
    assert config.head_dim == 7168 // 64
    assert config.rope_parameters == {"rope_type": "default", "rope_theta": 10000.0}
    assert not getattr(config, "layer_types", None)
    assert not config.attention_bias
    assert config.eagle_config == KIMI_LLAMA["eagle_config"]


def test_what_the_file_states_stays(read):
    stated = {"head_dim": 64, "attention_bias": True, "rope_theta": 5e5}
    config = read(KIMI_LLAMA, model_type="gpt_oss", **stated)
    assert (config.head_dim, config.attention_bias) == (64, True)
    assert config.rope_parameters["rope_theta"] == 5e5


def test_quantisation_that_vllm_found_elsewhere_stays(read, tmp_path):
    found = {"quant_method": "fp8", "activation_scheme": "dynamic"}
    (tmp_path / "hf_quant_config.json").write_text(json.dumps(found))
    assert read(KIMI_LLAMA).quantization_config == found


@pytest.mark.parametrize("model_type", ["kimi_k2", "deepseek_v3"])
def test_latent_attention_is_recognised(read, model_type):
    from vllm.transformers_utils.configs.eagle import EAGLEConfig
    from vllm.transformers_utils.model_arch_config_convertor import (
        ModelArchConfigConvertorBase,
    )

    names = ["Eagle3DeepseekV2ForCausalLM"]
    config = read(
        KIMI_LLAMA, architectures=names, model_type=model_type, kv_lora_rank=512
    )
    assert config.architectures == names
    draft = EAGLEConfig(config, method="eagle3", model_type="eagle")
    convertor = ModelArchConfigConvertorBase(draft, draft)
    assert convertor.is_deepseek_mla()


@pytest.mark.parametrize("model_type", ["llama", "qwen3"])
def test_model_types_of_draft_families_stay(read, model_type):
    assert read(KIMI_LLAMA, model_type=model_type).model_type == model_type


def test_other_models_are_left_alone(read):
    config = read(KIMI_LLAMA, architectures=["DeepseekV3ForCausalLM"])
    assert config.model_type == "kimi_k2"
    config = read(
        KIMI_LLAMA, architectures=["DeepseekV3ForCausalLM"], model_type="deepseek_v3"
    )
    assert config.architectures == ["DeepSeekMTPModel"]


@pytest.mark.parametrize(
    ("names", "model_type"),
    [
        (["Eagle3DraftModel"], "llama"),
        (["MyEagle3Model"], "llama"),
        ([None], "llama"),
        ([1], "llama"),
        ({"a": 1}, "llama"),
        (None, "kimi_k2"),
    ],
)
def test_unknown_names_are_refused_with_the_right_ones(read, names, model_type):
    with pytest.raises(ValueError) as refused:
        read(KIMI_LLAMA, architectures=names, model_type=model_type)
    sentence = str(refused.value)
    assert sentence.startswith(f"The draft's config leads to architectures {names}, ")
    for right in ("Eagle3Llama", "Eagle3Qwen3", "Eagle3DeepseekV2"):
        assert f"[{right}ForCausalLM]" in sentence


def test_the_function_reaches_vllms_other_processes():
    override = SpeculativeConfig.hf_config_override
    assert pickle.loads(pickle.dumps(override)) is override

# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""Architecture names that vLLM's registry lacks reach the right family."""

import importlib
import json
from pathlib import Path
from typing import Any

import pytest

from tests.plugins.clean_process import MODELS
from vllm_eagle3 import aliases

LLAMA = {
    "model_type": "llama",
    "vocab_size": 1024,
    "hidden_size": 128,
    "intermediate_size": 256,
    "num_hidden_layers": 1,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 32,
    "max_position_embeddings": 2048,
}
QWEN3 = LLAMA | {"model_type": "qwen3"}
DEEPSEEK = {key: value for key, value in LLAMA.items() if key != "head_dim"} | {
    "model_type": "deepseek_v3",
    "num_key_value_heads": 4,
    "kv_lora_rank": 512,
    "q_lora_rank": None,
    "qk_rope_head_dim": 64,
    "qk_nope_head_dim": 128,
    "v_head_dim": 128,
}

DRAFTS = {
    "llama, no architectures": (LLAMA, None, "llama_eagle3"),
    "LlamaEagle3DraftModel": (LLAMA, "LlamaEagle3DraftModel", "llama_eagle3"),
    "LlamaForCausalLMEagle4": (LLAMA, "LlamaForCausalLMEagle4", "llama_eagle3"),
    "gpt-oss": (
        LLAMA | {"model_type": "gpt_oss"},
        "GptOssForCausalLMEagle3",
        "llama_eagle3",
    ),
    "P-EAGLE": (LLAMA, "PEagleDraftModel", "llama_eagle3"),
    "P-EAGLE, qwen3": (QWEN3, "PeagleQwen3ForCausalLM", "qwen3_eagle3"),
    "llama of a DeepSeek target": (
        LLAMA | {"model_type": "deepseek_v3"},
        "LlamaForCausalLMEagle3",
        "llama_eagle3",
    ),
    "kimi_k2": (
        DEEPSEEK | {"model_type": "kimi_k2"},
        "Eagle3DeepseekV2ForCausalLM",
        "deepseek_eagle3",
    ),
    "deepseek_v3, SpecForge's name": (
        DEEPSEEK,
        "DeepseekV3ForCausalLMEagle3",
        "deepseek_eagle3",
    ),
    "qwen3, no architectures": (QWEN3, None, "qwen3_eagle3"),
    "deepseek_v3, no architectures": (DEEPSEEK, None, "deepseek_eagle3"),
    "deepseek_v3, vLLM's name": (
        DEEPSEEK,
        "Eagle3DeepseekV3ForCausalLM",
        "deepseek_eagle3",
    ),
    "deepseek_v2, no architectures": (
        DEEPSEEK | {"model_type": "deepseek_v2"},
        None,
        "deepseek_eagle3",
    ),
}


@pytest.fixture
def inspect_here(monkeypatch):
    """Lets vLLM look at model classes in this process; another costs seconds."""
    registry = importlib.import_module(f"{MODELS}.registry")
    monkeypatch.setattr(registry, "_run_in_subprocess", lambda function: function())


def write_config(folder: Path, config: dict[str, Any], architecture: str | None) -> str:
    named = {} if architecture is None else {"architectures": [architecture]}
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(config | named))
    return str(folder)


def draft_model_config(
    folder: Path, config: dict[str, Any], architecture: str | None
) -> Any:
    from vllm.engine.arg_utils import EngineArgs

    arguments = EngineArgs(
        model=write_config(folder / "target", LLAMA, "LlamaForCausalLM"),
        skip_tokenizer_init=True,
        max_model_len=512,
        dtype="float32",
        speculative_config={
            "method": "eagle3",
            "model": write_config(folder / "draft", config, architecture),
            "num_speculative_tokens": 2,
        },
    )
    return arguments.create_engine_config().speculative_config.draft_model_config


@pytest.mark.parametrize("case", DRAFTS)
def test_a_draft_is_served_by_its_family(case, tmp_path, inspect_here):
    config, architecture, family = DRAFTS[case]
    draft = draft_model_config(tmp_path, config, architecture)
    model, _ = draft.registry.resolve_model_cls(draft.architectures, draft)
    assert model.__module__ == f"{MODELS}.{family}"


@pytest.mark.parametrize(
    ("config", "architecture"),
    [
        (LLAMA | {"model_type": "mistral"}, "MistralForCausalLM"),
        (LLAMA | {"model_type": "mistral"}, None),
        (LLAMA, "Eagle3DraftModel"),
    ],
)
def test_a_name_of_no_draft_is_refused(config, architecture, tmp_path, inspect_here):
    with pytest.raises(ValueError, match="which are no EAGLE-3 draft that vLLM can"):
        draft_model_config(tmp_path, config, architecture)


def stock_names() -> set[str]:
    registry = importlib.import_module(f"{MODELS}.registry")
    return set(registry.ModelRegistry.models)


def test_no_alias_takes_a_name_that_vllm_has(clean_vllm):
    """Goes red when vLLM learns one of the names: drop the alias then."""
    assert clean_vllm(stock_names).isdisjoint(aliases.ALIASES)


def register_over(name: str) -> object:
    from contextlib import ExitStack

    registry = importlib.import_module(f"{MODELS}.registry").ModelRegistry
    registry.models[name] = "vLLM's own"
    aliases.register(ExitStack())
    return registry.models[name]


def test_an_alias_yields_to_a_name_that_vllm_has_learnt(clean_vllm):
    assert clean_vllm(register_over, "Eagle3LlamaModel") == "vLLM's own"


def test_registering_an_alias_imports_no_model(clean_vllm):
    assert clean_vllm(modules_after_registering) == []


def modules_after_registering() -> list[str]:
    import sys
    from contextlib import ExitStack

    aliases.register(ExitStack())
    return [
        name
        for name in sys.modules
        if name.startswith(f"{MODELS}.") and "eagle3" in name
    ]

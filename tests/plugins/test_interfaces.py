# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""The fork's classes look to vLLM exactly like stock's.

vLLM caches what it finds out about a model class under the hash of the *stock*
file, overlay or not. So whichever of the two it inspected first, the answers must
fit the other: all that it reads of a draft.
"""

import dataclasses
import importlib
import inspect
from typing import Any

import pytest

from tests.plugins.clean_process import FAMILIES, MODELS

ARCHITECTURES = {
    "PEagleDraftModel": "llama_eagle3",
    "PeagleLlamaForCausalLM": "llama_eagle3",
    "Eagle3LlamaForCausalLM": "llama_eagle3",
    "Eagle3MiniMaxM2ForCausalLM": "llama_eagle3",
    "LlamaForCausalLMEagle3": "llama_eagle3",
    "Eagle3Qwen2_5vlForCausalLM": "llama_eagle3",
    "Eagle3Qwen3vlForCausalLM": "llama_eagle3",
    "Eagle3Qwen3ForCausalLM": "qwen3_eagle3",
    "PeagleQwen3ForCausalLM": "qwen3_eagle3",
    "Eagle3DeepseekV2ForCausalLM": "deepseek_eagle3",
    "Eagle3DeepseekV3ForCausalLM": "deepseek_eagle3",
}

# From 0.33 on vLLM takes note of it, and reads it of targets alone (LoRAConfig).
NOT_READ_OF_DRAFTS = {"supports_lora"}


def model_infos() -> dict[str, dict[str, Any]]:
    """Returns what vLLM finds out about each class, and where the class is from."""
    registry = importlib.import_module(f"{MODELS}.registry")
    infos = {}
    for architecture in ARCHITECTURES:
        model = registry.ModelRegistry.models[architecture].load_model_cls()
        info = dataclasses.asdict(registry._ModelInfo.from_model_cls(model))
        infos[architecture] = {"file": inspect.getfile(model), "info": info}
    return infos


@pytest.fixture(scope="module")
def stock(clean_vllm):
    return clean_vllm(model_infos)


@pytest.fixture(scope="module")
def fork():
    return model_infos()


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_a_class_has_the_interface_of_the_stock_class(architecture, stock, fork):
    assert stock[architecture]["file"] != fork[architecture]["file"]
    ours, theirs = fork[architecture]["info"], stock[architecture]["info"]
    different = {key for key in ours.keys() | theirs if ours[key] != theirs[key]}
    assert different <= NOT_READ_OF_DRAFTS


def test_these_are_all_names_that_vllm_serves_with_the_three_files(clean_vllm):
    assert clean_vllm(registered_names) == ARCHITECTURES


def registered_names() -> dict[str, str]:
    registry = importlib.import_module(f"{MODELS}.registry")
    modules = {
        name: getattr(entry, "module_name", "").rpartition(".")[2]
        for name, entry in registry.ModelRegistry.models.items()
    }
    return {name: module for name, module in modules.items() if module in FAMILIES}


@pytest.mark.parametrize(
    "module, name",
    [
        ("llama_eagle3", "Eagle3LlamaForCausalLM"),
        ("qwen3_eagle3", "Eagle3Qwen3ForCausalLM"),
        ("deepseek_eagle3", "Eagle3DeepseekV2ForCausalLM"),
        ("deepseek_eagle3", "Eagle3DeepseekV3ForCausalLM"),
    ],
)
def test_a_constructor_names_the_parameters_that_vllm_looks_for(module, name):
    model = getattr(importlib.import_module(f"{MODELS}.{module}"), name)
    parameters = inspect.signature(model.__init__).parameters
    assert {"vllm_config", "prefix"} <= set(parameters)

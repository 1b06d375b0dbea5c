# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""vLLM's own draft classes, loaded from the installed files beside the fork's."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch import nn

from .drafts import draft_environment

CLASSES = {
    "llama": ("llama_eagle3", "Eagle3LlamaForCausalLM"),
    "qwen3": ("qwen3_eagle3", "Eagle3Qwen3ForCausalLM"),
    "deepseek": ("deepseek_eagle3", "Eagle3DeepseekV2ForCausalLM"),
}


def stock_file(module: str) -> Path:
    """The installed vLLM's file of a model module, whatever the overlay does."""
    import vllm

    return Path(vllm.__file__).parent / "model_executor" / "models" / f"{module}.py"


def stock_module(module: str) -> ModuleType:
    """`module` from the installed file, under a name of its own."""
    name = f"vllm.model_executor.models._stock_{module}"
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, stock_file(module))
        assert spec is not None and spec.loader is not None
        loaded = importlib.util.module_from_spec(spec)
        sys.modules[name] = loaded
        spec.loader.exec_module(loaded)
    return sys.modules[name]


def stock_class(family: str) -> type[nn.Module]:
    module, name = CLASSES[family]
    return getattr(stock_module(module), name)


def build(
    model_class: type[nn.Module], config: Any, tensors: dict[str, torch.Tensor]
) -> nn.Module:
    """Construct `model_class` as vLLM's loader does, and give it `tensors`."""
    from vllm.model_executor.model_loader.utils import initialize_model
    from vllm.utils.torch_utils import set_default_torch_dtype

    draft = config.speculative_config.draft_model_config
    with draft_environment(config), set_default_torch_dtype(draft.dtype):
        model = initialize_model(config, model_class=model_class, model_config=draft)
        if tensors:
            model.load_weights(iter(tensors.items()))
    return model.eval()


def make_ready(model: nn.Module, config: Any) -> None:
    """Pack the weights for the CPU's kernels: what vLLM does last, before it runs."""
    from vllm.model_executor.model_loader.utils import process_weights_after_loading

    draft = config.speculative_config.draft_model_config
    with draft_environment(config):
        process_weights_after_loading(model, draft, torch.device("cpu"))

# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""Loads of thousands of drafts, each in milliseconds.

The engine's config is made once per family; each draft puts its own config and its
target's sizes in place, and goes to the model's class as vLLM's loader would send it.
"""

import copy
import functools
import importlib
import tempfile
from pathlib import Path
from typing import Any

import torch
from torch import nn
from transformers import AutoConfig
from vllm.model_executor.model_loader.utils import (
    initialize_model,
    process_weights_after_loading,
)
from vllm.transformers_utils.configs.eagle import EAGLEConfig
from vllm.utils.torch_utils import set_default_torch_dtype

from tests.support.checkpoints import target_config
from tests.support.drafts import draft_environment, engine_config, own_rope_tables

from ..checkpoint import Checkpoint
from ..small import small

CLASSES = {
    "llama": ("llama_eagle3", "Eagle3LlamaForCausalLM"),
    "qwen3": ("qwen3_eagle3", "Eagle3Qwen3ForCausalLM"),
    "deepseek": ("deepseek_eagle3", "Eagle3DeepseekV2ForCausalLM"),
}


@functools.cache
def _engine(family: str) -> Any:
    draft = small(family)
    with tempfile.TemporaryDirectory() as folder:
        path = draft.write(Path(folder) / "draft")
        return engine_config(path, target_config(**draft.target))


def read_config(checkpoint: Checkpoint) -> Any:
    """The checkpoint's config as transformers reads it.

    Raises:
        Exception: what transformers raises for a config that it cannot read.
    """
    return AutoConfig.for_model(**checkpoint.config)


def _engine_for(family: str, own: Any, checkpoint: Checkpoint) -> Any:
    """vLLM's config for a draft with the config `own` before its target."""
    config = copy.copy(_engine(family))
    config.compilation_config = copy.copy(config.compilation_config)
    config.compilation_config.static_forward_context = {}
    speculative = config.speculative_config = copy.copy(config.speculative_config)
    speculative.parallel_drafting = checkpoint.parallel
    draft = copy.copy(speculative.draft_model_config)
    draft.hf_config = EAGLEConfig(own, method="eagle3", model_type="eagle")
    draft.hf_text_config = draft.hf_config
    speculative.draft_model_config = draft
    config.model_config = copy.copy(config.model_config)
    sizes = copy.copy(config.model_config.model_arch_config)
    sizes.vocab_size = checkpoint.target["vocab_size"]
    sizes.hidden_size = checkpoint.target["hidden_size"]
    sizes.total_num_hidden_layers = checkpoint.target["num_hidden_layers"]
    config.model_config.model_arch_config = sizes
    return config


def load(family: str, own: Any, checkpoint: Checkpoint) -> nn.Module:
    """Construct the family's class and give it the tensors, as vLLM's loader does.

    Args:
        own: the checkpoint's config, from `read_config`.

    Raises:
        ValueError: as the fork's hooks, the constructor and `load_weights` do.
    """
    config = _engine_for(family, own, checkpoint)
    module, name = CLASSES[family]
    models = importlib.import_module(f"vllm.model_executor.models.{module}")
    draft = config.speculative_config.draft_model_config
    with (
        draft_environment(config),
        set_default_torch_dtype(torch.float32),
        own_rope_tables(),
    ):
        model = initialize_model(
            config, model_class=getattr(models, name), model_config=draft
        )
        model.load_weights(iter(checkpoint.tensors.items()))
        process_weights_after_loading(model, draft, torch.device("cpu"))
    return model.eval()

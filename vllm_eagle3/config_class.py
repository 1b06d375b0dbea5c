# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""Reads a draft's config as its architecture says, not as its model type does.

Symptom: a draft with Llama layers whose ``model_type`` is its target's
(``kimi_k2``, ``gpt_oss``, ``phi3``, as SpecForge writes them) is built with another
head size, rope, sliding windows or biases than it was trained with. A draft of model
type ``deepseek_v3`` becomes an MTP module, and one with latent attention of model type
``kimi_k2`` is not recognised as such.

Cause: vLLM chooses the class of a config by ``model_type`` alone, and that class fills
in what the file leaves out. Training libraries choose it by ``architectures``.

Fix: before vLLM adapts a draft's config, read it again as a Llama config where the
architecture says Llama, and tell vLLM what it does not recognise.
"""

import functools
from contextlib import ExitStack
from typing import Any

from vllm_eagle3 import aliases

_MARK = "_vllm_eagle3_original"

# Of drafts with Llama layers, whatever their target is.
_LLAMA = frozenset(
    {
        "Eagle3LlamaForCausalLM",
        "GptOssForCausalLMEagle3",
        "LlamaEagle3DraftModel",
        "LlamaForCausalLMEagle3",
        "LlamaForCausalLMEagle4",
        "PEagleDraftModel",
        "PeagleLlamaForCausalLM",
    }
)
_DEEPSEEK = frozenset(
    {
        "DeepseekV2ForCausalLMEagle3",
        "DeepseekV3ForCausalLMEagle3",
        "Eagle3DeepseekV2ForCausalLM",
        "Eagle3DeepseekV3ForCausalLM",
    }
)


def watch(undo: ExitStack) -> None:
    """Corrects each EAGLE-3 draft config before vLLM adapts it.

    Args:
        undo: Receives a callback that takes the change back.
    """
    from vllm.config.speculative import SpeculativeConfig

    original = SpeculativeConfig.hf_config_override
    if hasattr(original, _MARK):
        return

    # Under its own name, because vLLM sends the function to its other processes. Since
    # 0.33 it has a second parameter, which is handed on as it comes.
    @functools.wraps(original)
    def override(hf_config: Any, *others: Any, **more: Any) -> Any:
        names = _architectures(hf_config.architectures)
        if names & _LLAMA:
            return original(_as_llama(hf_config), *others, **more)
        if names & _DEEPSEEK:
            return _as_deepseek(hf_config)
        if any("eagle3" in name.lower() for name in names):
            aliases.check_architectures(hf_config.architectures)
        return original(hf_config, *others, **more)

    setattr(override, _MARK, original)
    SpeculativeConfig.hf_config_override = staticmethod(override)  # type: ignore[assignment]
    undo.callback(
        setattr, SpeculativeConfig, "hf_config_override", staticmethod(original)
    )


def _architectures(names: Any) -> set[str]:
    are_names = isinstance(names, list) and all(isinstance(n, str) for n in names)
    if not names or not are_names:
        aliases.refuse_architectures(names)
    return set(names)


def _as_llama(config: Any) -> Any:
    from transformers import LlamaConfig, PreTrainedConfig, Qwen3Config
    from vllm.transformers_utils.configs.speculators import SpeculatorsConfig

    if isinstance(config, LlamaConfig | Qwen3Config | SpeculatorsConfig):
        return config
    file, _ = PreTrainedConfig.get_config_dict(
        config._name_or_path, revision=getattr(config, "_commit_hash", None)
    )
    del file["model_type"]
    # vLLM may have found it in a file of its own.
    quantization = getattr(config, "quantization_config", None)
    llama = LlamaConfig.from_dict(file)
    if quantization is not None:
        llama.quantization_config = quantization
    llama._name_or_path = config._name_or_path
    return llama


def _as_deepseek(config: Any) -> Any:
    from transformers import DeepseekV3Config

    if isinstance(config, DeepseekV3Config):
        # vLLM gives drafts of other model types of this class other attention.
        vars(config)["model_type"] = "deepseek_v3"
    return config

# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""Architecture names of real EAGLE-3 drafts that vLLM's registry lacks.

Symptom: vLLM refuses such a draft with "Model architectures [...] are not
supported for now", although it is an ordinary Llama, Qwen3 or DeepSeek draft.

Cause: vLLM rewrites the name a draft gives itself before it asks its registry.
A draft without ``architectures`` gets transformers' name for its model type
(``LlamaModel``); one of model type ``deepseek_v3`` is taken for an MTP module
(``DeepSeekMTPModel``), whatever name it gave; then ``method: eagle3`` puts
``Eagle3`` in front of every name that neither starts nor ends with it.

Fix: register the outcome. The names go in as strings, so nothing is imported. Names
that stay unknown are refused in a sentence that says which are right.
"""

from collections.abc import Iterable
from contextlib import ExitStack
from typing import Any, NoReturn

from vllm_eagle3.subtree import PACKAGE

_LLAMA = f"{PACKAGE}.llama_eagle3:Eagle3LlamaForCausalLM"
_QWEN3 = f"{PACKAGE}.qwen3_eagle3:Eagle3Qwen3ForCausalLM"
_DEEPSEEK = f"{PACKAGE}.deepseek_eagle3:Eagle3DeepseekV2ForCausalLM"

ALIASES = {
    # SpecForge and others. vLLM looks a draft up twice: by the name in its
    # config.json, and by the prefixed name once the method is known.
    "LlamaEagle3DraftModel": _LLAMA,
    "Eagle3LlamaEagle3DraftModel": _LLAMA,
    "GptOssForCausalLMEagle3": _LLAMA,  # named after its target
    "LlamaForCausalLMEagle4": _LLAMA,  # norms of EAGLE-3.1, which the config states
    "Eagle3LlamaForCausalLMEagle4": _LLAMA,
    # P-EAGLE. vLLM knows the names without the prefix that it gives them.
    "Eagle3PEagleDraftModel": _LLAMA,
    "Eagle3PeagleLlamaForCausalLM": _LLAMA,
    "Eagle3PeagleQwen3ForCausalLM": _QWEN3,
    "Qwen3ForCausalLMEagle3": _QWEN3,
    "DeepseekV2ForCausalLMEagle3": _DEEPSEEK,
    "DeepseekV3ForCausalLMEagle3": _DEEPSEEK,
    # No `architectures` in config.json; model_type decides.
    "Eagle3LlamaModel": _LLAMA,
    "Eagle3Qwen3Model": _QWEN3,
    "Eagle3DeepseekV2Model": _DEEPSEEK,
    # model_type deepseek_v3, with any architecture name or none.
    "Eagle3DeepSeekMTPModel": _DEEPSEEK,
}


def register(undo: ExitStack) -> None:
    """Adds the aliases to vLLM's registry; names that it knows stay its own.

    Args:
        undo: Receives a callback for each name that was added.
    """
    from vllm.model_executor.models.registry import ModelRegistry

    for name, target in ALIASES.items():
        if name not in ModelRegistry.models:
            ModelRegistry.register_model(name, target)
            undo.callback(ModelRegistry.models.pop, name, None)


def check_architectures(names: Iterable[str]) -> None:
    """Checks that vLLM's registry knows one of a draft's architectures.

    Raises:
        ValueError: naming those that are right for an EAGLE-3 draft.
    """
    from vllm.model_executor.models.registry import ModelRegistry

    if ModelRegistry.models.keys().isdisjoint(names):
        refuse_architectures(list(names))


def refuse_architectures(names: Any) -> NoReturn:
    """Says which architectures an EAGLE-3 draft may name.

    Raises:
        ValueError: always.
    """
    raise ValueError(
        f"The draft's config leads to architectures {names}, which are no EAGLE-3 "
        "draft that vLLM can serve. Set architectures to [Eagle3LlamaForCausalLM], to "
        "[Eagle3Qwen3ForCausalLM] if its layers have q_norm and k_norm, or to "
        "[Eagle3DeepseekV2ForCausalLM] if they have latent attention. A plain language "
        'model is no EAGLE-3 draft; serve it with "method": "draft_model".'
    )

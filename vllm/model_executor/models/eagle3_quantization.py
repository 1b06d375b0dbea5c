# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""The draft's own quantisation, spoken in the model's names.

A draft is quantised by its own config, never by the target's, and by the names in its
checkpoint, which are not those that vLLM asks for; see `eagle3_quant_names.py`.
"""

from typing import Any

from vllm.config import VllmConfig
from vllm.logger import init_logger
from vllm.model_executor.layers.quantization import QuantizationConfig

from .eagle3_config import Eagle3DraftConfig
from .eagle3_quant_cache import cache_alone
from .eagle3_quant_formats import resolve_names
from .eagle3_quant_names import DraftModules
from .eagle3_slots import StackedModules
from .utils import get_draft_quant_config

logger = init_logger(__name__)

_PLAIN_CACHE = ("auto", "float32", "float16", "bfloat16")

# Without a value of this key, these formats quantise nothing.
_METHOD_KEYS = {"modelopt": "quant_algo", "compressed-tensors": "config_groups"}


def draft_quantization(
    vllm_config: VllmConfig, draft: Eagle3DraftConfig, stacked: StackedModules
) -> QuantizationConfig | None:
    """The draft's quantisation config, or `None` where it is not quantised.

    Raises:
        ValueError: the config cannot be served; the message names the key.
    """
    keys = getattr(draft.hf_config, "quantization_config", None)
    config = cache_alone(keys)
    if config is None and not _names_no_method(keys):
        config = get_draft_quant_config(vllm_config)
    if config is not None:
        config.packed_modules_mapping.update(
            {whole: list(parts) for whole, parts in stacked.items()}
        )
        resolve_names(config, DraftModules(draft, stacked))
        _follow_cache(vllm_config, config)
    return config


def _names_no_method(keys: Any) -> bool:
    """Some exporters of plain drafts leave a config behind that quantises nothing."""
    if not isinstance(keys, dict):
        return False
    method = keys.get("quant_method")
    key = _METHOD_KEYS.get(method) if isinstance(method, str) else None
    nested = keys.get("quantization")
    found = [scope.get(key) for scope in (keys, nested) if isinstance(scope, dict)]
    if key is None or any(found) or keys.get("kv_cache_scheme"):
        return False
    logger.warning(
        "quantization_config in the draft's config names no %s: the draft is served "
        "as not quantised.",
        key,
    )
    return True


def _follow_cache(vllm_config: VllmConfig, config: Any) -> None:
    """Keep the draft's `kv_cache_scheme` from changing the engine's cache.

    Target and draft share the settings of one cache. vLLM's attention layers set its
    dtype by that key, and the target's layers stand already when the draft's are built.
    """
    scheme = getattr(config, "kv_cache_scheme", None)
    if scheme is None or vllm_config.cache_config.cache_dtype not in _PLAIN_CACHE:
        return
    logger.warning(
        "kv_cache_scheme in the draft's quantization_config is not used, because the "
        "engine's key-value cache is not quantised. --kv-cache-dtype fp8 quantises it "
        "for target and draft."
    )
    config.kv_cache_scheme = None

# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""Scales of the key-value cache that a draft's checkpoint brings along.

They are no weights: a cache that is not quantised ignores them, and vLLM has defaults
for those that are missing. vLLM brings their names to `self_attn.attn.*`; latent
attention keeps them elsewhere, where vLLM's weights loader would not find them.

ModelOpt can quantise the cache and nothing else. Its config then names no algorithm for
weights, without which vLLM builds no config that would take the scales.
"""

from collections.abc import Mapping
from typing import Any

from torch import nn
from vllm.model_executor.layers.quantization import QuantizationConfig
from vllm.model_executor.layers.quantization.modelopt import ModelOptFp8Config

from .draft_vocabulary import CheckpointTensor
from .eagle3_slots import WeightSlot, deliver

_ATTENTION = ".self_attn.attn."
_LATENT_ATTENTION = ".self_attn.mla_attn.mla_attn."
_PER_HEAD = "attn_head"
# Caches of ModelOpt whose scales vLLM knows.
_CACHES = ("FP8", "NVFP4")


def cache_alone(keys: Any) -> QuantizationConfig | None:
    """The config of a ModelOpt draft that quantises its cache and no weights.

    Args:
        keys: `quantization_config` of the draft's config.

    Returns:
        `None` for all other drafts.

    Raises:
        ValueError: the cache is of a kind whose scales vLLM does not know.
    """
    if not isinstance(keys, dict) or not _is_of_modelopt(keys):
        return None
    nested = keys.get("quantization")
    scopes = [keys, nested] if isinstance(nested, dict) else [keys]
    cache = next(filter(None, map(_cache_of, scopes)), None)
    if cache is None or any(scope.get("quant_algo") for scope in scopes):
        return None
    if cache not in _CACHES:
        raise ValueError(
            f"The draft's quantization_config quantises the cache alone, as {cache}. "
            f"It must be one of {', '.join(_CACHES)}; re-export the draft so, or "
            "without a quantised cache."
        )
    # Every module is left out; what remains is the method that takes the scales.
    algorithms = {"quant_algo": "FP8", "kv_cache_quant_algo": cache}
    return ModelOptFp8Config.from_config(
        {"quantization": algorithms | {"exclude_modules": ["*"]}}
    )


def _is_of_modelopt(keys: Mapping[str, Any]) -> bool:
    producer = keys.get("producer")
    name = producer.get("name") if isinstance(producer, dict) else None
    return "modelopt" in (name, keys.get("quant_method"))


def _cache_of(keys: Mapping[str, Any]) -> str | None:
    """As in `hf_quant_config.json`, or spelt out as in `config.json`."""
    scheme = keys.get("kv_cache_scheme") or keys.get("kv_cache_quant_algo")
    if not isinstance(scheme, dict):
        return str(scheme).upper() if scheme else None
    spelt = (scheme.get("type"), scheme.get("num_bits"))
    return "FP8" if spelt == ("float", 8) else f"{spelt[0]} of {spelt[1]} bits"


def place_of(name: str, slots: Mapping[str, WeightSlot]) -> str:
    """Where a tensor of vLLM's name `name` goes in this model."""
    latent = name.replace(_ATTENTION, _LATENT_ATTENTION)
    return latent if latent in slots else name


def is_spare(
    name: str, slots: Mapping[str, WeightSlot], config: QuantizationConfig | None
) -> bool:
    """Whether `name` is a scale of a cache that this draft does not scale."""
    if config is None or not name.endswith(config._ignore_unexpected_suffixes):
        return False
    return name not in slots or _drops_scales_per_head(config)


def check_cache_scales(
    weights: Mapping[str, CheckpointTensor], config: QuantizationConfig | None
) -> None:
    """Refuse scales for keys without scales for values, and the reverse.

    Raises:
        ValueError: naming the scale whose counterpart is missing.
    """
    for name, found in weights.items():
        path, _, leaf = name.rpartition(".")
        other = {"k_scale": "v_scale", "v_scale": "k_scale"}.get(leaf)
        if other is None or not f"{path}.".endswith((_ATTENTION, _LATENT_ATTENTION)):
            continue
        if f"{path}.{other}" in weights or _stands_for_both(found.name, config):
            continue
        raise ValueError(
            f"The draft checkpoint holds {found.name}, but no {other} for that layer. "
            "Re-export the draft with both, or with neither."
        )


def load_latent_scales(
    model: nn.Module, weights: Mapping[str, CheckpointTensor]
) -> set[str]:
    """Fill the scales of latent attention, and return their names."""
    names = {name for name in weights if _LATENT_ATTENTION in name}
    for name in names:
        deliver(model.get_parameter(name), weights[name].tensor)
    return names


def _drops_scales_per_head(config: Any) -> bool:
    """Whether the config has scales per head that the engine's cache does not use."""
    keys = getattr(config, "config", None) or {}
    declared = keys.get("kv_cache_scheme") or {}
    return declared.get("strategy") == _PER_HEAD and config.kv_cache_scheme is None


def _stands_for_both(name: str, config: QuantizationConfig | None) -> bool:
    """`kv_scale`, of old exporters; vLLM's compressed-tensors never spreads it."""
    spreads = config is not None and config.get_name() != "compressed-tensors"
    return spreads and name.endswith(".kv_scale")

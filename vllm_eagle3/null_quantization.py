# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""Quantisation configs in which the keys that name a method are null.

Symptom: vLLM ends at start with "AttributeError: 'NoneType' object has no attribute
'lower'" (or 'get'), and without a word about the model, although it is not quantised.

Cause: vLLM reads ``quant_method``, ``producer`` and ``quantization`` of a model's
``quantization_config`` or ``hf_quant_config.json`` with defaults for keys that are
absent, but not for null, which exporters write when they have quantised nothing.

Fix: take such keys out before vLLM reads them, so that null means absent. Configs
without a null there are not touched, whatever model they belong to.
"""

import functools
from contextlib import ExitStack
from typing import Any

_MARK = "_vllm_eagle3_null_keys"
_CONFIGS = ("quantization_config", "compression_config")
_KEYS = ("quant_method", "producer", "quantization")


def watch(undo: ExitStack) -> None:
    """Drops null keys from each quantisation config read from now on.

    Args:
        undo: Receives a callback that takes the change back.
    """
    from vllm.transformers_utils.model_arch_config_convertor import (
        ModelArchConfigConvertorBase as Convertor,
    )

    original = Convertor._normalize_quantization_config
    if hasattr(original, _MARK):
        return

    @functools.wraps(original)
    def normalize(self: Any, config: Any) -> Any:
        _drop_nulls(config)
        return original(self, config)

    setattr(normalize, _MARK, True)
    Convertor._normalize_quantization_config = normalize  # type: ignore[method-assign]
    undo.callback(setattr, Convertor, "_normalize_quantization_config", original)


def _drop_nulls(config: Any) -> None:
    for name in _CONFIGS:
        keys = getattr(config, name, None)
        if isinstance(keys, dict):
            for key in _KEYS:
                if key in keys and keys[key] is None:
                    del keys[key]

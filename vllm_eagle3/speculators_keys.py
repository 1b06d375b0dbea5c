# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""Carries keys of speculators' drafts over that vLLM leaves behind.

Symptom: a P-EAGLE draft saved by speculators with ``fc_norm`` is refused as if the key
were not set, and one with ``norm_output`` runs without it and is accepted less.

Cause: vLLM builds a draft's config from ``transformer_layer_config`` and a list of
top-level keys for each algorithm; these are not on the list of ``peagle``, nor is the
number of auxiliary hidden states on any.

Fix: add what is missing after vLLM has built the config.
"""

import functools
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

KEYS = ("fc_norm", "norm_output", "num_aux_hidden_states")
ALGORITHMS = ("eagle3", "peagle")
_MARK = "_vllm_eagle3_keys"


def watch(undo: ExitStack) -> None:
    """Completes the configs of EAGLE-3 and P-EAGLE drafts from now on.

    Args:
        undo: Receives a callback for each algorithm that takes the change back.
    """
    from vllm.transformers_utils.configs.speculators.algos import (
        SUPPORTED_SPECULATORS_TYPES,
    )

    for algorithm in ALGORITHMS:
        original = SUPPORTED_SPECULATORS_TYPES[algorithm]
        if not hasattr(original, _MARK):
            SUPPORTED_SPECULATORS_TYPES[algorithm] = _completed(original)
            undo.callback(SUPPORTED_SPECULATORS_TYPES.update, {algorithm: original})


def _completed(original: Callable[..., None]) -> Callable[..., None]:
    @functools.wraps(original)
    def update(config_dict: dict[str, Any], pre_trained_config: dict[str, Any]) -> None:
        # vLLM stumbles over a P-EAGLE draft without it; the draft model says so.
        stated = {"mask_token_id": None} | config_dict
        original(config_dict=stated, pre_trained_config=pre_trained_config)
        for key in KEYS:
            if config_dict.get(key) is not None:
                pre_trained_config[key] = config_dict[key]

    setattr(update, _MARK, KEYS)
    return update

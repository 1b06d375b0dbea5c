# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""Refuses a draft whose config names more layers than any memory holds.

Symptom: vLLM takes up all memory and hangs before it has said a word about the draft.

Cause: transformers makes a list with an entry for each of ``num_hidden_layers`` when
it reads the config of some model types (``qwen3``), so no check of the result comes in
time.

Fix: look at the number in the file first.
"""

import functools
from contextlib import ExitStack
from typing import Any

_MARK = "_vllm_eagle3_layer_count"
# Far beyond any model, and a list that costs nothing.
_MOST_LAYERS = 100_000


def watch(undo: ExitStack) -> None:
    """Looks at the draft's file before each EAGLE-3 speculative config from now on.

    Args:
        undo: Receives a callback that takes the change back.
    """
    from vllm.config.speculative import SpeculativeConfig

    original = SpeculativeConfig.__init__
    if hasattr(original, _MARK):
        return

    @functools.wraps(original)
    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        if kwargs.get("method") == "eagle3" and kwargs.get("model"):
            check_layer_count(kwargs["model"], kwargs.get("revision"))
        original(self, *args, **kwargs)

    setattr(init, _MARK, True)
    SpeculativeConfig.__init__ = init  # type: ignore[method-assign]
    undo.callback(setattr, SpeculativeConfig, "__init__", original)


def check_layer_count(draft: str, revision: str | None = None) -> None:
    """Checks the number of layers in a draft's ``config.json``, if it has one.

    Args:
        draft: Folder or Hub id.
        revision: On the Hub.

    Raises:
        ValueError: it is beyond reason.
    """
    from vllm.transformers_utils.repo_utils import get_hf_file_to_dict

    try:
        config = get_hf_file_to_dict("config.json", draft, revision)
    except (OSError, ValueError):
        return  # vLLM reads it next, and says what is wrong with it.
    if isinstance(config, dict):
        check_keys(config)


def check_keys(config: dict[str, Any]) -> None:
    """Checks the number of layers in what ``config.json`` holds.

    Raises:
        ValueError: it is beyond reason.
    """
    layers = config.get("num_hidden_layers")
    if isinstance(layers, int) and layers > _MOST_LAYERS:
        raise ValueError(
            f"num_hidden_layers is {layers} in the draft's config, and no draft has "
            f"more than {_MOST_LAYERS}. Correct the key."
        )

# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""Calls back when vLLM makes the config of an EAGLE-3 draft.

vLLM wraps a draft's config in an ``EAGLEConfig`` and has no hook there, so its
constructor is wrapped. Drafts of other methods pass through untouched.
"""

import functools
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

_MARK = "_vllm_eagle3_callbacks"


def watch(undo: ExitStack, *callbacks: Callable[[Any], None]) -> None:
    """Runs ``callbacks`` on each EAGLE-3 draft config made from now on.

    Args:
        undo: Receives a callback that takes the change back.
        callbacks: Called with the finished config, which they may change.
    """
    from vllm.transformers_utils.configs.eagle import EAGLEConfig

    original = EAGLEConfig.__init__
    if hasattr(original, _MARK):
        return

    @functools.wraps(original)
    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        original(self, *args, **kwargs)
        if any("Eagle3" in name for name in self.architectures or ()):
            for callback in callbacks:
                callback(self)

    setattr(init, _MARK, callbacks)
    EAGLEConfig.__init__ = init  # type: ignore[method-assign]
    undo.callback(setattr, EAGLEConfig, "__init__", original)

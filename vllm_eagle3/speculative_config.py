# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""Calls back before and after vLLM makes a speculative config.

vLLM has no hook there, so the constructor of ``SpeculativeConfig`` is wrapped, once
for all that have something to say. Configs of every method come by; the callbacks
choose theirs.
"""

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from typing import Any

_MARK = "_vllm_eagle3_callbacks"

Given = Mapping[str, Any]


def watch(
    undo: ExitStack,
    *,
    before: Sequence[Callable[[Given], None]] = (),
    after: Sequence[Callable[[Any, Given], None]] = (),
) -> None:
    """Runs the callbacks for each speculative config made from now on.

    Args:
        undo: Receives a callback that takes the change back.
        before: Called with the arguments that the constructor was given, by name.
        after: Called with the finished config, which they may change, and the same.
    """
    from vllm.config.speculative import SpeculativeConfig

    original = SpeculativeConfig.__init__
    if hasattr(original, _MARK):
        return
    signature = inspect.signature(SpeculativeConfig)

    @functools.wraps(original)
    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        given = _by_name(signature, args, kwargs)
        for check in before:
            check(given)
        original(self, *args, **kwargs)
        for change in after:
            change(self, given)

    setattr(init, _MARK, (before, after))
    SpeculativeConfig.__init__ = init  # type: ignore[method-assign]
    undo.callback(setattr, SpeculativeConfig, "__init__", original)


def _by_name(
    signature: inspect.Signature, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Given:
    try:
        return signature.bind(*args, **kwargs).arguments
    except TypeError:
        return kwargs  # the constructor says what is wrong with them

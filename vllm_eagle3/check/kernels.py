# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""Quantised drafts on a machine that cannot run them.

vLLM chooses a kernel while it builds a quantised layer, and refuses where this machine
has none. The machine that will serve may have one, and which tensors a layer takes does
not depend on the choice; so a check may take any.
"""

import contextlib
import re
import sys
from collections.abc import Iterator
from typing import Any
from unittest import mock

_OF_THE_DEVICE = re.compile(
    r"Failed to find a kernel|.*not supported (?:for the current GPU|in )", re.DOTALL
)


def is_about_this_machine(error: Exception) -> bool:
    """Whether a quantised draft failed for want of a kernel, and for no fault."""
    if isinstance(error, ValueError):
        return _OF_THE_DEVICE.match(str(error)) is not None
    if isinstance(error, AttributeError | TypeError):
        # Of an operator that this build lacks, or of the device that there is not; all
        # others come from a config that is no such config.
        return any(word in str(error) for word in ("_OpNamespace", "NoneType"))
    if isinstance(error, KeyError):
        # Kernels are listed by platform; what a config lacks is named by a string.
        return not any(isinstance(key, str) for key in error.args)
    return True


class _AnyKernel:
    """Stands where vLLM would put a kernel; nothing is ever computed by it."""

    def __init__(self, *_: Any, **__: Any) -> None:
        """Takes what any kernel takes."""

    def input_quant_key(self) -> None:
        """Asked by layers that could quantise for the next one."""


@contextlib.contextmanager
def any_will_do() -> Iterator[None]:
    """Within, vLLM finds a kernel for every quantised layer."""

    def choose(*_: Any, **__: Any) -> type[_AnyKernel]:
        return _AnyKernel

    with contextlib.ExitStack() as patches:
        for name in ("choose_scaled_mm_linear_kernel", "choose_mp_linear_kernel"):
            for module in list(sys.modules.values()):
                # Quantisation schemes hold the function under its name.
                if name in getattr(module, "__dict__", {}):
                    patches.enter_context(mock.patch.object(module, name, choose))
        yield


@contextlib.contextmanager
def any_format() -> Iterator[None]:
    """Within, vLLM plans for formats that it does not offer on this machine."""
    from vllm.platforms import current_platform

    with mock.patch.object(type(current_platform), "verify_quantization"):
        yield

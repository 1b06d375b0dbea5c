# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""The compiled operators: where they lie, whether they are loaded, and if not, why.

They are optional. Without them (no compiler at installation, a wheel for another
machine, or switched off) the fork computes the same in PyTorch.
"""

import ctypes
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from vllm_eagle3 import switches

if TYPE_CHECKING:
    import torch

OFF_SWITCH = "VLLM_EAGLE3_DISABLE_NATIVE"
# The first defines the operators, so it is loaded first.
LIBRARIES = {"cpu": "_native_cpu.so", "cuda": "_native_cuda.so"}


@dataclass(frozen=True)
class Native:
    """What became of the libraries.

    Attributes:
        devices: Device types whose operators are loaded.
        reason: Why none are; empty where some are.
        instructions: What the loops for the CPU use, see ``instructions``.
    """

    devices: tuple[str, ...]
    reason: str = ""
    instructions: str = ""

    def __str__(self) -> str:
        if not self.devices:
            return f"PyTorch ({self.reason})"
        names = " and ".join(self.devices)
        using = f", {self.instructions} on the CPU" if self.instructions else ""
        return f"native for {names}{using}"


def library(device: str) -> Path:
    """Returns where the library for a device lies if it was built."""
    return Path(__file__).resolve().parent / LIBRARIES[device]


@cache
def load() -> Native:
    """Loads what was built for this torch, once in a process; never raises."""
    if switches.is_set(OFF_SWITCH):
        return Native((), f"switched off by {OFF_SWITCH}")
    if not library("cpu").exists():
        return Native((), "not built at installation")
    import torch

    devices = ["cpu"]
    if torch.version.cuda and library("cuda").exists():
        devices.append("cuda")
    loaded: list[str] = []
    try:
        for device in devices:
            torch.ops.load_library(library(device))
            loaded.append(device)
    except OSError as error:
        if not loaded:
            return Native((), f"could not be loaded: {error}")
    _register_fakes()
    return Native(tuple(loaded), instructions=instructions())


def instructions(at_most: str | None = None) -> str:
    """What the CPU's loops use: ``default``, ``avx2`` or ``avx512``.

    It is what the processor has, or less where torch is limited to less by its variable
    ``ATEN_CPU_CAPABILITY``. Call it only where the library is loaded.

    Args:
        at_most: Limits this process from now on, up to what the processor has.

    Returns:
        Empty for a library built before there was a choice.
    """
    choose = getattr(_cpu_library(), "vllm_eagle3_instructions", None)
    if choose is None:
        return ""
    choose.argtypes, choose.restype = [ctypes.c_char_p], ctypes.c_char_p
    return choose(at_most and at_most.encode()).decode()


@cache
def _cpu_library() -> ctypes.CDLL:
    # What torch has loaded: asked for once, as a later build may replace the file.
    return ctypes.CDLL(str(library("cpu")))


def _register_fakes() -> None:
    """Tells torch.compile the shapes of the results."""
    import torch
    from torch import library as operators

    @operators.register_fake("vllm_eagle3::draft_argmax_to_target")
    def argmax(
        logits: "torch.Tensor", target_ids: "torch.Tensor | None"
    ) -> "torch.Tensor":
        return logits.new_empty(logits.shape[:1], dtype=torch.int64)

    @operators.register_fake("vllm_eagle3::widen_draft_logits")
    def widen(
        logits: "torch.Tensor", target_ids: "torch.Tensor", draft_ids: "torch.Tensor"
    ) -> "torch.Tensor":
        return logits.new_empty((logits.shape[0], draft_ids.shape[0]))

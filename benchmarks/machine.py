# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""What figures depend on beside the code: the processor, versions, what is native."""

import os
import platform
from pathlib import Path

from .experiment.report import versions

# What decides how fast vLLM and torch compute on a processor.
TELLING_FLAGS = ("avx2", "avx512f", "avx512_bf16", "amx_bf16")


def describe(device: str = "cpu") -> dict[str, str]:
    """Returns names and values for a report, in the order to show them in."""
    from vllm_eagle3 import native

    return {
        "device": _gpu() if device == "cuda" else _cpu(),
        "cores": str(len(os.sched_getaffinity(0))),
        "operators": str(native.load()),
        **versions(),
    }


def _gpu() -> str:
    import torch

    return torch.cuda.get_device_name()


def _cpu() -> str:
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    found = {key.strip(): value.strip() for key, _, value in _parts(lines)}
    name = found.get("model name") or platform.processor() or platform.machine()
    flags = set(found.get("flags", "").split())
    telling = [flag for flag in TELLING_FLAGS if flag in flags]
    return f"{name} ({', '.join(telling)})" if telling else name


def _parts(lines: list[str]) -> list[tuple[str, str, str]]:
    return [line.partition(":") for line in lines]

# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""Where operators can run: every device, and on the CPU every set of instructions."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from vllm_eagle3 import native

INSTRUCTIONS = ("default", "avx2", "avx512")


def instructions_here() -> tuple[str, ...]:
    """Those of this processor, the least first; none where nothing is loaded."""
    if not native.load().devices:
        return ()
    most = native.instructions()
    found = [name for name in INSTRUCTIONS if native.instructions(name) == name]
    native.instructions(most)
    return tuple(found)


@contextmanager
def limited_to(name: str) -> Iterator[None]:
    """With the loops that a lesser processor would run."""
    most = native.instructions()
    assert native.instructions(name) == name
    try:
        yield
    finally:
        assert native.instructions(most) == most


@contextmanager
def threads(count: int) -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


PLACES = (
    *(f"cpu-{name}" for name in instructions_here()),
    *(["cuda"] if torch.cuda.is_available() else []),
)

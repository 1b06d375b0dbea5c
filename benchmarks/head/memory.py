# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""How many bytes a step allocates beyond what it is given, at its worst moment."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import accumulate

import torch
from torch.profiler import ProfilerActivity, profile

from .variants import Step


def peak_bytes(step: Step, device: str) -> int:
    """Counts what torch's allocator is asked for, inside of operators too."""
    with step.operators():
        return _peak_on_gpu(step) if device == "cuda" else _peak_on_cpu(step)


def _peak_on_gpu(step: Step) -> int:
    torch.cuda.synchronize()
    before = torch.cuda.memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    step.run()
    return torch.cuda.max_memory_allocated() - before


def _peak_on_cpu(step: Step) -> int:
    cpu = [ProfilerActivity.CPU]
    with _without_stderr(), profile(activities=cpu, profile_memory=True) as seen:
        step.run()
    events = [
        event
        for event in seen.profiler.kineto_results.events()  # type: ignore[union-attr]
        if event.name() == "[memory]"
    ]
    events.sort(key=lambda event: event.start_ns())
    return max(accumulate((event.nbytes() for event in events), initial=0))


@contextmanager
def _without_stderr() -> Iterator[None]:
    """The profiler writes two lines there each time, past Python."""
    kept = os.dup(2)
    with open(os.devnull, "wb") as nothing:
        os.dup2(nothing.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)

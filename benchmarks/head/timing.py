# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""Times of several steps, taken in turn."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch

from .variants import Step


@dataclass(frozen=True)
class Patience:
    """How often steps are repeated.

    Attributes:
        seconds: for all steps of one run together.
        least, most: rounds, whatever the seconds.
    """

    seconds: float = 2.0
    least: int = 7
    most: int = 100


def interleaved(
    steps: Mapping[str, Step], device: str, patience: Patience
) -> dict[str, list[float]]:
    """Seconds of each step and round; each round runs all steps, in turn.

    Whatever else the machine does hits all alike, and every step finds the caches as
    the others left them.
    """
    clock = _seconds_on_gpu if device == "cuda" else _seconds_on_cpu
    taken: dict[str, list[float]] = {name: [] for name in steps}
    for step in steps.values():
        _timed(step, clock)
    start, rounds = time.monotonic(), 0
    while rounds < patience.least or (
        rounds < patience.most and time.monotonic() - start < patience.seconds
    ):
        for name, step in steps.items():
            taken[name].append(_timed(step, clock))
        rounds += 1
    return taken


def _timed(step: Step, clock: Callable[[Step], float]) -> float:
    with step.operators():
        return clock(step)


def _seconds_on_cpu(step: Step) -> float:
    # What a step allocates is given back within its time, as it must be in each step.
    start = time.perf_counter()
    step.run()
    return time.perf_counter() - start


def _seconds_on_gpu(step: Step) -> float:
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    step.run()
    end.record()
    end.synchronize()
    return start.elapsed_time(end) / 1000

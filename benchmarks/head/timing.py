# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""Times of several steps, taken in turn, and the memory that each allocates."""

import time
import weakref
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from statistics import median, quantiles
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

# Steps are repeated for so long together, and at least and at most so often.
SECONDS = 1.5
LEAST, MOST = 5, 200


@dataclass(frozen=True)
class Times:
    """Seconds of one step.

    Attributes:
        median, low, high: with the quartiles as spread.
        ratio, ratio_low, ratio_high: of the first step's time to this one's, from the
            rounds in which both ran one after the other.
    """

    median: float
    low: float
    high: float
    ratio: float
    ratio_low: float
    ratio_high: float


def interleaved(
    steps: Mapping[str, Callable[[], Any]], device: str, seconds: float = SECONDS
) -> dict[str, Times]:
    """Run all steps in turn, so that whatever else the machine does hits all alike."""
    clock = _clock_of(device)
    for step in steps.values():
        clock(step)
    taken: dict[str, list[float]] = {name: [] for name in steps}
    end = time.monotonic() + seconds * len(steps)
    rounds = 0
    while rounds < LEAST or (rounds < MOST and time.monotonic() < end):
        for name, step in steps.items():
            taken[name].append(clock(step))
        rounds += 1
    first = taken[next(iter(steps))]
    return {name: _summary(first, times) for name, times in taken.items()}


def _summary(first: list[float], times: list[float]) -> Times:
    ratios = [base / own for base, own in zip(first, times, strict=True)]
    low, _, high = quantiles(times, n=4)
    ratio_low, _, ratio_high = quantiles(ratios, n=4)
    return Times(median(times), low, high, median(ratios), ratio_low, ratio_high)


def _clock_of(device: str) -> Callable[[Callable[[], Any]], float]:
    return _seconds_on_gpu if device == "cuda" else _seconds_on_cpu


def _seconds_on_cpu(step: Callable[[], Any]) -> float:
    start = time.perf_counter()
    step()
    return time.perf_counter() - start


def _seconds_on_gpu(step: Callable[[], Any]) -> float:
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    step()
    end.record()
    end.synchronize()
    return start.elapsed_time(end) / 1000


class _Allocations(TorchDispatchMode):
    """Bytes of all tensors that were made inside and are alive."""

    def __init__(self) -> None:
        super().__init__()
        self.peak = self._alive = 0
        self._owners: dict[int, int] = {}

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        known = {t.untyped_storage().data_ptr() for t in _tensors((args, kwargs))}
        result = func(*args, **(kwargs or {}))
        for tensor in _tensors(result):
            self._add(tensor, known)
        return result

    def _add(self, tensor: torch.Tensor, known: set[int]) -> None:
        storage = tensor.untyped_storage()
        place, size = storage.data_ptr(), storage.nbytes()
        if place not in self._owners:
            if place in known:
                return
            self._owners[place] = 0
            self._alive += size
            self.peak = max(self.peak, self._alive)
        self._owners[place] += 1
        weakref.finalize(tensor, self._remove, place, size)

    def _remove(self, place: int, size: int) -> None:
        self._owners[place] -= 1
        if not self._owners[place]:
            del self._owners[place]
            self._alive -= size


def _tensors(value: Any) -> list[torch.Tensor]:
    return [leaf for leaf in torch.utils._pytree.tree_leaves(value) if _is_tensor(leaf)]


def _is_tensor(value: Any) -> bool:
    return isinstance(value, torch.Tensor)


def peak_bytes(step: Callable[[], Any], device: str) -> int:
    """What a step allocates beyond what it is given, at its worst moment."""
    if device == "cuda":
        torch.cuda.synchronize()
        before = torch.cuda.memory_allocated()
        torch.cuda.reset_peak_memory_stats()
        step()
        return torch.cuda.max_memory_allocated() - before
    with _Allocations() as allocations:
        step()
    return allocations.peak

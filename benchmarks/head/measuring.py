# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""Measures one draft: the tail after its head, and where it is quick, all of it."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import torch
import torch.nn.functional as F

from ..spread import Spread
from .cases import Case, Draft
from .memory import peak_bytes
from .results import TOKEN, TOKEN_WHOLE, WIDE, WIDE_WHOLE, Row
from .timing import Patience, interleaved
from .variants import STOCK, Step, Ways

COPY, COPY_IN_PLACE, HEAD = "copy", "copy into ready memory", "head alone"


@dataclass(frozen=True)
class Plan:
    """How to measure.

    Attributes:
        tails, wholes: how often, without and with the head's matrix product.
        slowest_head: seconds; with a slower head, only the tails are repeated.
        heads: whether there are any heads.
    """

    device: str
    tails: Patience = Patience(seconds=1.8, least=7, most=100)
    wholes: Patience = Patience(seconds=1.6, least=5, most=30)
    slowest_head: float = 0.12
    heads: bool = True


@torch.inference_mode()
def measure(draft: Draft, plan: Plan) -> Iterator[Row]:
    """The rows of all batches of one draft."""
    weight = _weight(draft, plan.device) if plan.heads else None
    for case in draft.cases():
        yield from tails(case, plan)
        if weight is not None:
            yield from wholes(case, weight, plan)


def tails(case: Case, plan: Plan) -> Iterator[Row]:
    """From the draft's logits on, and beside it the copies that make the floor."""
    logits = _random(case.batch, case.sizes.draft, case, plan.device)
    ways = Ways(case, lambda rows: rows, plan.device)
    ready = torch.empty_like(logits)
    copies = _copies(logits, ready)
    steps = ways.greedy(logits)
    times = interleaved(copies | steps, plan.device, plan.tails)
    # A copy reads and writes what is only read here.
    floor = _fastest_copy(times) / 2
    for name, step in steps.items():
        peak = peak_bytes(step, plan.device)
        yield _row(case, TOKEN, name, times, floor_seconds=floor, peak=peak)
    if case.sizes.reduced:
        yield from _widening(case, ways, logits, plan)
    else:
        yield from _passing_on(case, ways, logits, plan)


def _widening(
    case: Case, ways: Ways, logits: torch.Tensor, plan: Plan
) -> Iterator[Row]:
    wide = _random(case.batch, case.sizes.target, case, plan.device)
    ready = torch.empty_like(wide)
    steps = _copies(wide, ready) | ways.wide(logits)
    times = interleaved(steps, plan.device, plan.tails)
    moved = case.logit_bytes + case.wide_bytes
    floor = _fastest_copy(times) * moved / (2 * case.wide_bytes)
    for name, step in steps.items():
        peak = peak_bytes(step, plan.device)
        row = _row(case, WIDE, name, times, floor_seconds=floor, peak=peak, base=COPY)
        yield row


def _passing_on(
    case: Case, ways: Ways, logits: torch.Tensor, plan: Plan
) -> Iterator[Row]:
    """In full vocabulary the logits are the result, and asking for it is what costs."""
    steps = ways.wide(logits)
    times = interleaved(steps, plan.device, replace(plan.tails, seconds=0.2))
    for name, step in steps.items():
        yield _row(case, WIDE, name, times, peak=peak_bytes(step, plan.device))


def wholes(case: Case, weight: torch.Tensor, plan: Plan) -> Iterator[Row]:
    """From hidden states on, and the matrix product by itself."""
    states = _random(case.batch, case.sizes.hidden, case, plan.device)
    head = {HEAD: Step(lambda: F.linear(states, weight))}
    once = Patience(seconds=0.0, least=2, most=2)
    alone = interleaved(head, plan.device, once)
    if min(alone[HEAD]) > plan.slowest_head:
        yield _row(case, WIDE_WHOLE, HEAD, alone, base=HEAD)
        return
    ways = Ways(case, lambda given: F.linear(given, weight), plan.device)
    goals = {TOKEN_WHOLE: ways.greedy(states), WIDE_WHOLE: ways.wide(states)}
    steps = head | {
        f"{kind}: {name}": step
        for kind, group in goals.items()
        for name, step in group.items()
    }
    times = interleaved(steps, plan.device, plan.wholes)
    yield _row(case, WIDE_WHOLE, HEAD, times, base=HEAD)
    for kind, group in goals.items():
        own = {name: times[f"{kind}: {name}"] for name in group}
        for name, step in group.items():
            peak = peak_bytes(step, plan.device)
            yield _row(
                case, kind, name, own | {HEAD: times[HEAD]}, peak=peak, base=HEAD
            )


def _copies(tensor: torch.Tensor, ready: torch.Tensor) -> dict[str, Step]:
    return {
        COPY_IN_PLACE: Step(lambda: ready.copy_(tensor)),
        COPY: Step(tensor.clone),
    }


def _fastest_copy(times: Mapping[str, list[float]]) -> float:
    """Seconds; which of the two is faster depends on the size."""
    return min(Spread.of(times[name]).median for name in (COPY_IN_PLACE, COPY))


def _row(
    case: Case,
    kind: str,
    name: str,
    times: Mapping[str, list[float]],
    *,
    floor_seconds: float | None = None,
    peak: int | None = None,
    base: str | None = None,
) -> Row:
    taken = times[name]
    return Row(
        sizes=str(case.sizes),
        dtype=case.dtype,
        batch=case.batch,
        kind=kind,
        step=name,
        seconds=Spread.of(taken),
        speedup=Spread.of_ratios(times[STOCK], taken) if STOCK in times else None,
        of_base=Spread.of_ratios(taken, times[base]) if base else None,
        floor_seconds=floor_seconds,
        peak_bytes=peak,
    )


def _random(rows: int, columns: int, case: Case, device: str) -> torch.Tensor:
    return torch.randn(rows, columns, device=device).to(case.torch_dtype)


def _weight(draft: Draft, device: str) -> torch.Tensor:
    """A head `[D, H]`; its values matter to no time, and making many takes long."""
    case = next(draft.cases())
    block = _random(512, draft.sizes.hidden, case, device)
    times = -(-draft.sizes.draft // len(block))
    return block.repeat(times, 1)[: draft.sizes.draft]

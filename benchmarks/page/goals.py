# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""The goals, what was measured, and what bounds it."""

import operator
from collections.abc import Iterator
from dataclasses import dataclass

from ..head.results import TOKEN, WIDE, WIDE_WHOLE
from ..serving.results import Row
from .reports import Case, Reports, pick

REDUCED, FULL = "32000/128256/4096", "151936/151936/2048"
COPY, HEAD, STOCK, FLAG = "copy", "head alone", "stock", "stock, flag"


@dataclass(frozen=True)
class Goal:
    """One line of the table.

    Attributes:
        floor: what the bytes that must move would give, or what else bounds it.
    """

    what: str
    goal: str
    measured: str
    met: bool
    floor: str = ""


def goals(reports: Reports) -> list[Goal]:
    """All goals, in the order in which they were set."""
    return [
        _tail(reports, Case(REDUCED, "bfloat16", 64), 40),
        _tail(reports, Case(REDUCED, "float32", 64), 25),
        _tail(reports, Case(FULL, "bfloat16", 64), 12),
        _tail(reports, Case(FULL, "float32", 64), 4),
        *_widening(reports),
        _memory(reports),
        _bare_head(reports),
        *_serving(reports),
    ]


def _tail(reports: Reports, case: Case, times: float) -> Goal:
    steps = reports.steps(case, TOKEN)
    ours, flag, stock = reports.ours(case), steps[FLAG], steps[STOCK]
    assert ours.speedup and flag.speedup and ours.floor_seconds
    kind = "reduced" if case.reduced else "full"
    limit = stock.seconds.median / ours.floor_seconds
    return Goal(
        f"greedy tail, {kind} vocabulary {case.sizes.rpartition('/')[0]}, "
        f"{case.dtype}, B = {case.batch}: times as fast as stock",
        f"at least {times}",
        f"{ours.speedup.show('.1f')}; stock's flag {flag.speedup.median:.1f}",
        ours.speedup.median >= times,
        f"{limit:.0f}: the logits read once",
    )


def _widening(reports: Reports) -> Iterator[Goal]:
    for dtype in ("bfloat16", "float32"):
        for batch in (64, 256):
            case = Case(REDUCED, dtype, batch)
            steps = reports.steps(case, WIDE)
            ours, stock = reports.ours(case, WIDE), steps[STOCK]
            assert ours.of_base and stock.of_base and ours.floor_seconds
            floor = ours.floor_seconds / steps[COPY].seconds.median
            yield Goal(
                f"widening, {case.sizes.rpartition('/')[0]}, {dtype}, B = {batch}: "
                "plain copies of `[B, T]`",
                "at most 1.25",
                f"{ours.of_base.show()}; stock {stock.of_base.median:.2f}",
                ours.of_base.median <= 1.25,
                f"{floor:.2f}: logits read and result written once",
            )


def _memory(reports: Reports) -> Goal:
    cases = pick(reports.cases())
    case = Case(REDUCED, "bfloat16", 64)
    most = max(reports.ours(each).peak_bytes or 0 for each in cases)
    stock = reports.steps(case, TOKEN)[STOCK].peak_bytes or 0
    return Goal(
        "peak extra bytes of a greedy reduced step, B = 64",
        "of the order of B",
        f"{most:,} bytes; stock {stock / 2**20:.1f} MiB",
        most <= 64 * 64,
        "512: one int64 for each token",
    )


def _bare_head(reports: Reports) -> Goal:
    """By what is added to the head; two heads in turn differ by more than that."""
    added, heads = [], []
    for case in pick(reports.cases(), batches=(1, 8, 64, 256), reduced=False):
        after = reports.ours(case, WIDE).seconds.median
        head = reports.steps(case, WIDE_WHOLE)[HEAD].seconds.median
        added.append(after)
        heads.append((head + after) / head)
    return Goal(
        "full vocabulary: `compute_logits` over the head alone",
        "1.00",
        f"{max(heads):.4f} at most, by what runs after the head: "
        f"{1e6 * max(added):.1f} µs at most",
        round(max(heads), 2) <= 1.0,
        "1: it returns the head's own tensor",
    )


def _serving(reports: Reports) -> Iterator[Goal]:
    for vocabulary, goal, met, least in (
        ("full", "never below", operator.ge, 0.99),
        ("reduced", "above", operator.gt, 1.0),
    ):
        rows = [row for row in reports.serving if row.vocabulary == vocabulary]
        shown = "; ".join(f"{row.ratio.show()} at {row.concurrency}" for row in rows)
        missed = [row for row in rows if not met(row.ratio.median, least)]
        yield Goal(
            f"serving, {vocabulary} vocabulary: throughput over stock's",
            f"{goal} {least}",
            shown,
            not missed,
            _resolution(rows, least),
        )


def _resolution(rows: list[Row], least: float) -> str:
    """Where measurements of the same differ by more than they do from the goal."""
    covered = [row for row in rows if row.ratio.low < least <= row.ratio.high]
    if not covered:
        return ""
    levels = " and ".join(str(row.concurrency) for row in covered)
    return f"at {levels}, the quartiles do not tell this from {least}"

# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""Markdown tables of the draft head: a line for each case."""

from collections.abc import Iterator, Mapping

from ..head.results import TOKEN, TOKEN_WHOLE, WIDE, WIDE_WHOLE, Row
from ..spread import Spread
from .reports import Case, Reports, best
from .tables import table

CASE = ("D / T / H", "dtype", "B")
WAYS = ("stock", "stock, flag", "ours, PyTorch", "ours, native")
HEAD = "head alone"
DTYPES = {"bfloat16": "bf16", "float32": "fp32"}


def tokens(reports: Reports) -> str:
    """From logits to a draft token."""
    head = (*CASE, *(f"{way}, ms" for way in WAYS), "floor, ms", "times stock")
    return table((*head, "stock, extra", "ours, extra"), _token_lines(reports), 2)


def _token_lines(reports: Reports) -> Iterator[tuple[str, ...]]:
    for case in reports.cases():
        steps = reports.steps(case, TOKEN)
        ours, stock = best(steps), steps["stock"]
        yield (
            *_case(case),
            *(_ms(steps, way) for way in WAYS),
            f"{1000 * (ours.floor_seconds or 0):.3f}",
            _show(ours.speedup, ".1f"),
            _bytes(stock.peak_bytes),
            _bytes(ours.peak_bytes),
        )


def widening(reports: Reports) -> str:
    """From logits to logits over the target's ids, in plain copies."""
    ways = [way for way in WAYS if way != "stock, flag"]
    head = (*CASE, "copy, ms", *(f"{way}, copies" for way in ways), "floor, copies")
    return table((*head, "stock, extra", "ours, extra"), _wide_lines(reports, ways), 2)


def _wide_lines(reports: Reports, ways: list[str]) -> Iterator[tuple[str, ...]]:
    for case in reports.cases():
        steps = reports.steps(case, WIDE)
        if not case.reduced:
            continue
        ours, copy = best(steps), steps["copy"]
        yield (
            *_case(case),
            _ms(steps, "copy"),
            *(_show(steps[way].of_base) if way in steps else "" for way in ways),
            f"{(ours.floor_seconds or 0) / copy.seconds.median:.2f}",
            _bytes(steps["stock"].peak_bytes),
            _bytes(ours.peak_bytes),
        )


def wholes(reports: Reports) -> str:
    """From hidden states to a token, and what the head alone takes."""
    head = (*CASE, "head alone, ms", *(f"{way}, ms" for way in WAYS), "times stock")
    return table(head, _whole_lines(reports), 2)


def _whole_lines(reports: Reports) -> Iterator[tuple[str, ...]]:
    for case in reports.cases():
        alone = reports.steps(case, WIDE_WHOLE)
        steps = reports.steps(case, TOKEN_WHOLE)
        if HEAD not in alone:
            continue
        if steps:
            times = [_ms(steps, way) for way in WAYS]
            speedup = _show(best(steps).speedup)
        else:
            tails = reports.steps(case, TOKEN)
            times = [_sum(alone[HEAD], tails, way) for way in WAYS]
            speedup = _sum_speedup(alone[HEAD], tails)
        yield (*_case(case), _ms(alone, HEAD), *times, speedup)


def logits(reports: Reports) -> str:
    """From hidden states to logits over the target's ids, in times of the head."""
    ways = [way for way in WAYS if way != "stock, flag"]
    head = (*CASE, "head alone, ms", *(f"{way} / head" for way in ways), "after it, ms")
    lines = []
    for case in reports.cases():
        steps = reports.steps(case, WIDE_WHOLE)
        if "stock" in steps:
            ratios = (_show(steps[way].of_base) if way in steps else "" for way in ways)
            after = f"{1000 * reports.ours(case, WIDE).seconds.median:.3f}"
            lines.append((*_case(case), _ms(steps, HEAD), *ratios, after))
    return table(head, lines, 2)


def _case(case: Case) -> tuple[str, str, str]:
    return (case.sizes.replace("/", " / "), DTYPES[case.dtype], str(case.batch))


def _ms(steps: Mapping[str, Row], way: str) -> str:
    return f"{1000 * steps[way].seconds.median:.3f}" if way in steps else ""


def _sum(head: Row, tails: Mapping[str, Row], way: str) -> str:
    if way not in tails:
        return ""
    return f"{1000 * (head.seconds.median + tails[way].seconds.median):.1f} *"


def _sum_speedup(head: Row, tails: Mapping[str, Row]) -> str:
    alone = head.seconds.median
    ours = alone + best(dict(tails)).seconds.median
    return f"{(alone + tails['stock'].seconds.median) / ours:.2f} *"


def _show(spread: Spread | None, form: str = ".2f") -> str:
    return spread.show(form) if spread is not None else ""


def _bytes(count: int | None) -> str:
    if count is None:
        return ""
    return f"{count / 2**20:.1f} MiB" if count >= 2**17 else f"{count:,} B"

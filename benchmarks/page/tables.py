# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""Markdown tables of the goals, of serving, and of starting."""

from collections.abc import Iterable, Sequence

from ..starting.results import STAGES
from .goals import Goal
from .reports import Reports


def table(head: Sequence[str], lines: Iterable[Sequence[str]], text: int = 1) -> str:
    """A table whose first `text` columns stand left and whose others stand right."""
    rule = ["---" if number < text else "---:" for number in range(len(head))]
    return "\n".join(f"| {' | '.join(line)} |" for line in (head, rule, *lines))


def machine(reports: Reports) -> str:
    return table(
        ("what", "which"), [(key, value) for key, value in reports.machine.items()], 2
    )


def goals(found: Sequence[Goal]) -> str:
    return table(
        ("what", "goal", "measured", "met", "floor"),
        [
            (g.what, g.goal, g.measured, "yes" if g.met else "**no**", g.floor)
            for g in found
        ],
        5,
    )


def serving(reports: Reports) -> str:
    head = (
        *("vocabulary", "requests at a time", "stock, tokens/s", "fork, tokens/s"),
        *("fork / stock", "stock, ms", "fork, ms", "acceptance length"),
    )
    lines = [
        (
            row.vocabulary,
            str(row.concurrency),
            row.stock.throughput.show(".1f"),
            row.fork.throughput.show(".1f"),
            row.ratio.show(".3f"),
            f"{1000 * row.stock.latency_s.median:.1f}",
            f"{1000 * row.fork.latency_s.median:.1f}",
            _pair(row.stock.acceptance_length, row.fork.acceptance_length),
        )
        for row in reports.serving
    ]
    return table(head, lines)


def starting(reports: Reports) -> str:
    head = ("process", "stage", "stock, s", "fork, s", "added, s", "fork / stock")
    lines = [
        (
            "imports only" if row.start == "import" else "starts an engine",
            STAGES[row.stage],
            row.stock.show(),
            row.fork.show(),
            row.added.show(),
            f"{row.ratio.median:.3f}" if row.stock.median > 0.1 else "",
        )
        for row in reports.starting
    ]
    return table(head, lines, 2)


def _pair(stock: float, fork: float) -> str:
    """One figure where both are equal."""
    if f"{stock:.3f}" == f"{fork:.3f}":
        return f"{fork:.3f}"
    return f"stock {stock:.3f}, fork {fork:.3f}"

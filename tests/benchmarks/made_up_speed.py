# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""Reports of speed that nobody measured, for tests of what is made of them."""

from dataclasses import replace

from benchmarks.head.results import TOKEN, TOKEN_WHOLE, WIDE, WIDE_WHOLE
from benchmarks.head.results import Row as HeadRow
from benchmarks.page.goals import FULL, REDUCED
from benchmarks.page.reports import Reports
from benchmarks.serving.plan import Plan
from benchmarks.serving.results import Measured
from benchmarks.serving.results import Row as ServingRow
from benchmarks.spread import Spread
from benchmarks.starting.results import STAGES
from benchmarks.starting.results import Row as StartingRow

# Seconds of each way from logits to a token, and in plain copies to wide logits.
TOKEN_SECONDS = {
    "stock": 0.05,
    "stock, flag": 0.005,
    "ours, PyTorch": 0.002,
    "ours, native": 0.001,
}
COPIES = {
    "copy into ready memory": 0.5,
    "copy": 1.0,
    "stock": 3.5,
    "ours, PyTorch": 1.6,
    "ours, native": 1.2,
}
COPY_SECONDS = 0.01
HEAD_SECONDS = 0.1


def exactly(value: float) -> Spread:
    return Spread(value, value, value, 9)


def reports() -> Reports:
    """All goals are reached in these."""
    head: list[HeadRow] = []
    for sizes in (REDUCED, FULL):
        for dtype in ("bfloat16", "float32"):
            for batch in (64, 256):
                head += _head_rows(sizes, dtype, batch)
    loads = Plan().loads
    rounds = [
        {"stock": Measured(100, 0.02, 10, 6), "fork": Measured(102, 0.02, 10, 6)}
    ] * 3
    serving = [
        ServingRow.of(v, ld, rounds) for v in ("full", "reduced") for ld in loads
    ]
    starting = [
        StartingRow.of("import", stage, [8.0, 8.1], [8.2, 8.3]) for stage in STAGES
    ]
    return Reports({"device": "none"}, tuple(head), tuple(serving), tuple(starting))


def _head_rows(sizes: str, dtype: str, batch: int) -> list[HeadRow]:
    empty = HeadRow(sizes, dtype, batch, TOKEN, "", exactly(1.0))
    rows = [
        replace(
            empty,
            step=step,
            seconds=exactly(seconds),
            speedup=exactly(TOKEN_SECONDS["stock"] / seconds),
            floor_seconds=0.0005,
            peak_bytes=8 * batch if "ours" in step else 2 * batch * 128256,
        )
        for step, seconds in TOKEN_SECONDS.items()
    ]
    if sizes == REDUCED:
        rows += [
            replace(
                empty,
                kind=WIDE,
                step=step,
                seconds=exactly(copies * COPY_SECONDS),
                of_base=exactly(copies),
                floor_seconds=0.4 * COPY_SECONDS,
                peak_bytes=2 * batch * 128256,
            )
            for step, copies in COPIES.items()
        ]
    else:
        rows += [
            replace(empty, kind=WIDE, step=step, seconds=exactly(1e-6))
            for step in ("stock", "ours, PyTorch", "ours, native")
        ]
    alone = replace(empty, kind=WIDE_WHOLE, step="head alone", seconds=exactly(0.1))
    rows.append(replace(alone, of_base=exactly(1.0)))
    if batch == 64:
        rows += [replace(alone, step=s, of_base=exactly(1.0)) for s in TOKEN_SECONDS]
        rows += [
            replace(row, kind=TOKEN_WHOLE, seconds=exactly(0.1 + row.seconds.median))
            for row in rows
            if row.kind == TOKEN
        ]
    return rows

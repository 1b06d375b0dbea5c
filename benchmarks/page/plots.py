# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""Pictures of the reports as SVG, the same for the same reports."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from ..head.results import TOKEN, WIDE
from .goals import FULL, REDUCED
from .reports import Case, Reports, pick

# Colours that remain apart for colour-blind eyes (Okabe and Ito).
COLOURS = {
    "stock": "#D55E00",
    "stock, flag": "#E69F00",
    "ours, PyTorch": "#56B4E9",
    "ours, native": "#0072B2",
}
LABELS = {
    "stock": "stock vLLM",
    "stock, flag": "stock with use_local_argmax_reduction",
    "ours, PyTorch": "this fork, PyTorch",
    "ours, native": "this fork, native",
}
GREY = "#888888"
# In inches, of the pictures that need more than usual.
HEIGHTS = {"draft_tail_sizes": 7.0}


def draw_all(reports: Reports, folder: Path) -> None:
    """Writes every picture of the page into `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, picture in PICTURES.items():
        _save(picture, reports, folder / f"{name}.svg")


def _save(
    picture: Callable[[Any, Reports], None], reports: Reports, file: Path
) -> None:
    import matplotlib

    matplotlib.use("svg")
    # Text stays text, and ids do not change from one run to the next.
    matplotlib.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": file.stem})
    import matplotlib.pyplot as plt

    height = HEIGHTS.get(file.stem, 4.2)
    figure = plt.figure(figsize=(9.0, height), layout="constrained")
    picture(figure, reports)
    for axes in figure.axes:
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(file, metadata={"Date": None})
    plt.close(figure)


def draft_tail(figure: Any, reports: Reports) -> None:
    """Milliseconds from logits to a token, over the batch size."""
    panels = figure.subplots(1, 2, sharey=True)
    titles = ("reduced: 32000 of 128256 ids", "full: 151936 ids")
    for axes, sizes, title in zip(panels, (REDUCED, FULL), titles, strict=True):
        cases = [
            c for c in reports.cases() if (c.sizes, c.dtype) == (sizes, "bfloat16")
        ]
        batches = [case.batch for case in cases]
        for step, colour in COLOURS.items():
            rows = [reports.steps(case, TOKEN).get(step) for case in cases]
            times = [1000 * row.seconds.median for row in rows if row is not None]
            if len(times) == len(batches):
                axes.plot(batches, times, "o-", color=colour, label=LABELS[step])
        floors = [1000 * (reports.ours(case).floor_seconds or 0) for case in cases]
        floor = "half a copy of the logits"
        axes.plot(batches, floors, "--", color=GREY, label=floor)
        axes.set_xscale("log", base=2)
        axes.set_yscale("log")
        axes.set_xticks(batches, [str(batch) for batch in batches])
        axes.set_xlabel("tokens in a step (B)")
        axes.set_title(title, fontsize=10)
    panels[0].set_ylabel("milliseconds")
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3, frameon=False)


def draft_tail_sizes(figure: Any, reports: Reports) -> None:
    """Times as fast as stock from logits to a token, for all drafts at B = 64."""
    cases = _at_64(reports, reduced=True) + _at_64(reports, reduced=False)
    steps = ("stock, flag", "ours, PyTorch", "ours, native")
    axes = figure.subplots()
    values = {step: _values(reports, cases, TOKEN, step, "speedup") for step in steps}
    _bars(axes, [_name(case) for case in cases], values)
    axes.axvline(1, color=COLOURS["stock"], linewidth=1)
    axes.set_xscale("log")
    axes.set_xlabel("times as fast as stock vLLM, from logits to a token, B = 64")


def widening(figure: Any, reports: Reports) -> None:
    """Plain copies that widening takes, for the reduced drafts at B = 64."""
    cases = _at_64(reports, reduced=True)
    steps = ("stock", "ours, PyTorch", "ours, native")
    axes = figure.subplots()
    values = {step: _values(reports, cases, WIDE, step, "of_base") for step in steps}
    _bars(axes, [_name(case) for case in cases], values)
    axes.axvline(1, color=GREY, linewidth=1, linestyle="--")
    axes.set_xlabel("plain copies of [B, T] that widening the logits takes, B = 64")


def serving(figure: Any, reports: Reports) -> None:
    """Throughput over stock's, with quartiles."""
    axes = figure.subplots()
    colours = {"full": "#56B4E9", "reduced": "#0072B2"}
    levels = list(dict.fromkeys(row.concurrency for row in reports.serving))
    for shift, (vocabulary, colour) in enumerate(colours.items()):
        rows = [row for row in reports.serving if row.vocabulary == vocabulary]
        places = [levels.index(row.concurrency) + 0.2 * shift - 0.1 for row in rows]
        middle = [row.ratio.median for row in rows]
        below = [row.ratio.median - row.ratio.low for row in rows]
        above = [row.ratio.high - row.ratio.median for row in rows]
        label = f"{vocabulary} vocabulary"
        axes.errorbar(
            places,
            middle,
            (below, above),
            fmt="o",
            capsize=4,
            color=colour,
            label=label,
        )
    axes.axhline(1, color=COLOURS["stock"], linewidth=1, label="stock vLLM")
    axes.set_xticks(range(len(levels)), [str(level) for level in levels])
    axes.set_xlim(-0.5, len(levels) - 0.5)
    axes.set_xlabel("requests at a time")
    axes.set_ylabel("tokens per second, fork over stock")
    axes.legend(frameon=False)


PICTURES = {
    "draft_tail": draft_tail,
    "draft_tail_sizes": draft_tail_sizes,
    "widening": widening,
    "serving": serving,
}


def _at_64(reports: Reports, *, reduced: bool) -> list[Case]:
    return pick(reports.cases(), reduced=reduced)


def _name(case: Case) -> str:
    dtype = "bf16" if case.dtype == "bfloat16" else "fp32"
    return f"{case.draft} of {case.target}, {dtype}"


def _values(
    reports: Reports, cases: list[Case], kind: str, step: str, what: str
) -> list[float]:
    """Medians of one step over the cases; nothing where it was not measured."""
    rows = [reports.steps(case, kind).get(step) for case in cases]
    return [getattr(row, what).median for row in rows if row is not None]


def _bars(axes: Any, names: list[str], values: dict[str, list[float]]) -> None:
    shown = {step: found for step, found in values.items() if len(found) == len(names)}
    height = 0.8 / len(shown)
    for number, (step, found) in enumerate(shown.items()):
        places = [index + number * height for index in range(len(names))]
        bars = axes.barh(
            places, found, height * 0.9, color=COLOURS[step], label=LABELS[step]
        )
        axes.bar_label(bars, fmt="%.2g", fontsize=8, padding=2)
    middle = (len(shown) - 1) * height / 2
    ticks = [index + middle for index in range(len(names))]
    axes.set_yticks(ticks, names, fontsize=8)
    axes.invert_yaxis()
    axes.margins(x=0.12)
    axes.figure.legend(loc="outside lower center", ncols=3, frameon=False, fontsize=8)

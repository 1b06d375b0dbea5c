# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""A picture of acceptance by position for the four vocabularies."""

from collections.abc import Sequence
from pathlib import Path

from .results import RowResult
from .rows import SPEC_TOKENS, VOCABULARIES

# Colours that remain apart for colour-blind eyes (Okabe and Ito).
COLOURS = {
    "full": "#0072B2",
    "default": "#56B4E9",
    "full-d2t": "#009E73",
    "reduced": "#D55E00",
}
BAR = 0.2


def to_plot(results: Sequence[RowResult]) -> dict[str, RowResult]:
    """Returns one row per vocabulary: the fork's on V1 with the longest answers.

    Raises:
        ValueError: One is missing.
    """
    longest = max(result.form.max_tokens for result in results)
    found = {
        result.row.kind: result
        for result in results
        if (result.row.implementation, result.row.runner) == ("fork", "v1")
        and result.form.max_tokens == longest
        and result.counts
    }
    missing = [name for name in VOCABULARIES if name not in found]
    if missing:
        raise ValueError(f"no results to plot for {', '.join(missing)}")
    return {name: found[name] for name in VOCABULARIES}


def draw(results: Sequence[RowResult], file: Path) -> None:
    """Writes an SVG file, the same for the same results."""
    import matplotlib

    matplotlib.use("svg")
    # Text stays text, and ids do not change from one run to the next.
    matplotlib.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "acceptance"})
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(7.2, 3.4), layout="constrained")
    for number, (name, result) in enumerate(to_plot(results).items()):
        shares = [100 * share for share in result.acceptance_by_position]
        left = [place + (number - 1.5) * BAR for place in range(SPEC_TOKENS)]
        label = f"{name}: {result.acceptance_length:.2f} tokens per step"
        bars = axes.bar(left, shares, BAR * 0.9, color=COLOURS[name], label=label)
        axes.bar_label(bars, fmt="%.1f", fontsize=8, padding=2)
    places = range(SPEC_TOKENS)
    axes.set_xticks(places, [f"draft token {place + 1}" for place in places])
    axes.set_ylabel("accepted, % of drafts")
    axes.margins(y=0.12)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False)
    figure.savefig(file, metadata={"Date": None})
    plt.close(figure)

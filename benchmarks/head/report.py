# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""Results as plain data, as tables, and as a plot."""

import platform
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import torch

# Colours that remain apart for colour-blind eyes (Okabe and Ito).
COLOURS = {
    "stock": "#D55E00",
    "stock, flag": "#E69F00",
    "ours, PyTorch": "#56B4E9",
    "ours, native": "#0072B2",
}
TITLES = {
    "token from logits": "From the draft's logits to a draft token",
    "token from states": "From hidden states to a draft token",
    "wide from logits": "From the draft's logits to logits over the target's ids",
    "wide from states": "From hidden states to logits over the target's ids",
}


def machine(device: str) -> dict[str, Any]:
    """What the figures depend on."""
    import vllm

    name = torch.cuda.get_device_name() if device == "cuda" else _cpu()
    return {
        "device": name,
        "threads": torch.get_num_threads(),
        "torch": torch.__version__,
        "vllm": vllm.__version__,
    }


def _cpu() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor()


def markdown(report: dict[str, Any]) -> str:
    """A table for each kind of step, and the machine above."""
    machine = ", ".join(f"{key} {value}" for key, value in report["machine"].items())
    parts = [f"Measured on: {machine}. Times are medians of steps taken in turn."]
    for kind, title in TITLES.items():
        rows = [row for row in report["rows"] if row["kind"] == kind]
        if rows:
            parts.append(f"### {title}\n\n" + "\n".join(_table(rows)))
    return "\n\n".join(parts) + "\n"


def _table(rows: Sequence[dict[str, Any]]) -> Iterator[str]:
    yield "| D/T/H | dtype | B | step | ms | times stock | of the floor | extra MiB |"
    yield "|---|---|---|---|---|---|---|---|"
    for row in rows:
        ratio = f"{row['ratio']:.2f} ({row['ratio_low']:.2f}–{row['ratio_high']:.2f})"
        yield (
            f"| {row['sizes']} | {row['dtype']} | {row['batch']} | {row['step']} "
            f"| {1000 * row['median']:.3f} | {ratio} "
            f"| {row['median'] / row['floor']:.1f} "
            f"| {row['peak_bytes'] / 2**20:.2f} |"
        )


def draw(report: dict[str, Any], file: Path) -> None:
    """An SVG: how many times faster than stock each step is, from logits on."""
    import matplotlib

    matplotlib.use("svg")
    # Text stays text, and ids do not change from one run to the next.
    matplotlib.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "draft_head"})
    import matplotlib.pyplot as plt

    kinds = ("token from logits", "wide from logits")
    figure, panels = plt.subplots(1, 2, figsize=(9.6, 4.8), layout="constrained")
    for panel, kind in zip(panels, kinds, strict=True):
        rows = [row for row in report["rows"] if row["kind"] == kind]
        _bars(panel, rows)
        panel.set_title(TITLES[kind], fontsize=9)
        panel.set_xlabel("times as fast as stock vLLM")
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center")
    figure.savefig(file, metadata={"Date": None})
    plt.close(figure)


def _bars(panel: Any, rows: Sequence[dict[str, Any]]) -> None:
    rows = [row for row in rows if row["batch"] == 64]
    cases = list(dict.fromkeys((row["sizes"], row["dtype"]) for row in rows))
    steps = [name for name in COLOURS if any(row["step"] == name for row in rows)]
    height = 0.8 / len(steps)
    for number, step in enumerate(steps):
        own = {(r["sizes"], r["dtype"]): r["ratio"] for r in rows if r["step"] == step}
        places = [index + number * height for index in range(len(cases))]
        values = [own.get(case, 0.0) for case in cases]
        bars = panel.barh(places, values, height * 0.9, color=COLOURS[step], label=step)
        panel.bar_label(bars, fmt="%.1f", fontsize=7, padding=2)
    labels = [f"{sizes}\n{dtype}" for sizes, dtype in cases]
    middle = (len(steps) - 1) * height / 2
    panel.set_yticks(
        [index + middle for index in range(len(cases))], labels, fontsize=7
    )
    panel.invert_yaxis()
    panel.set_xscale("log")
    panel.margins(x=0.15)

# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""A report for people: coloured in a terminal, plain text where it is piped."""

import json
from collections.abc import Iterator
from typing import TextIO

from rich.console import Console
from rich.table import Table
from rich.text import Text

from vllm_eagle3.check.report import (
    Input,
    Model,
    Quantisation,
    Report,
    Severity,
    Vocabulary,
)

_COLOURS = {
    Severity.ERROR: "bold red",
    Severity.WARNING: "yellow",
    Severity.NOTE: "cyan",
}
_VERDICTS = {
    "refused": ("bold red", "REFUSED: a server would not start with this draft."),
    "serves with warnings": (
        "yellow",
        "SERVES, WITH WARNINGS: a server would start, and run worse than it should.",
    ),
    "serves": ("bold green", "SERVES: a server would start with this draft."),
}
# Wide enough for no sentence to be broken where nobody reads it on a screen.
_PLAIN_WIDTH = 10_000


class _Console(Console):
    def on_broken_pipe(self) -> None:
        """Leave it to the command line, which says the same for all commands."""
        raise BrokenPipeError


def show(report: Report, output: TextIO) -> None:
    """Print `report` to `output`."""
    terminal = output.isatty()
    console = _Console(
        file=output,
        highlight=False,
        soft_wrap=not terminal,
        width=None if terminal else _PLAIN_WIDTH,
    )
    facts = Table.grid(padding=(0, 2))
    facts.add_column(style="bold", no_wrap=True)
    facts.add_column(overflow="fold")
    rows = list(_facts(report))
    if terminal:
        for label, value in rows:
            facts.add_row(label, Text(printable(value)))
        console.print(facts)
    else:
        for label, value in rows:
            console.print(Text(f"{label:<15}{printable(value)}"))
    console.print()
    _findings(report, console)
    colour, words = _VERDICTS[report.verdict]
    console.print(Text(words, style=colour))
    if report.verdict != "refused":
        console.print(Text(f"--speculative-config '{_to_serve(report)}'"))
    seconds = report.seconds
    console.print(
        Text(
            f"imports {seconds.imports:.1f} s, check {seconds.check:.1f} s", style="dim"
        )
    )


def printable(text: str) -> str:
    """Text without what would steer a terminal: names in a checkpoint are anybody's.

    Further lines are set in, so that none looks like one of the report.
    """
    shown = (
        char if char.isprintable() or char == "\n" else ascii(char)[1:-1]
        for char in text
    )
    return "".join(shown).replace("\n", "\n  ")


def _findings(report: Report, console: Console) -> None:
    for severity in Severity:
        for finding in report.of(severity):
            line = Text.assemble(
                (severity.value, _COLOURS[severity]),
                (f" ({finding.stage.value}): ", "dim"),
                printable(finding.message),
            )
            console.print(line)
    if report.findings:
        console.print()


def _to_serve(report: Report) -> str:
    return json.dumps(report.speculative_config)


def _facts(report: Report) -> Iterator[tuple[str, str]]:
    yield "draft", _named(report.draft)
    yield "target", _named(report.target)
    if report.exporter is not None:
        exporter = report.exporter
        yield "exporter", f"{exporter.name} ({exporter.evidence})"
    if report.model is not None:
        yield from _model(report.model)
    if report.vocabulary is not None:
        yield from _vocabulary(report.vocabulary)
    for cost in report.costs:
        stock, here = _bytes(cost.stock), _bytes(cost.here)
        yield cost.sampling, f"{here} a token (stock: {stock}): {cost.route}"
    yield from report.sharing.items()
    if report.quantisation is not None:
        yield "quantised", _quantisation(report.quantisation)


def _named(shown: Input) -> str:
    """What the user typed; of a Hub repository also which commit that is."""
    of_the_hub = shown.where.startswith("Hub")
    return f"{shown.name} ({shown.where})" if of_the_hub else shown.name


def _model(model: Model) -> Iterator[tuple[str, str]]:
    yield "family", f"{model.family}, served by {model.model_class}"
    drafting = ", all tokens in one pass (P-EAGLE)" if model.parallel_drafting else ""
    layers = "1 layer" if model.layers == 1 else f"{model.layers} layers"
    hidden = f"hidden {model.hidden_size} (target {model.target_hidden_size})"
    yield "size", f"{layers}, {hidden}{drafting}"
    auxiliary = model.auxiliary
    ids = ", ".join(map(str, auxiliary.ids or ()))
    yield "auxiliary", f"{ids} ({auxiliary.source})" if ids else auxiliary.source
    yield "norms", "; ".join(model.norms) or "as in the EAGLE-3 paper, no variant"


def _vocabulary(found: Vocabulary) -> Iterator[tuple[str, str]]:
    own = f"C {found.draft_config} (vocab_size of the draft), D {found.draft} (head)"
    yield "sizes", f"T {found.target} (target), {own}"
    source = f" by {found.map_source}" if found.map_source else ""
    yield "vocabulary", f"{found.path}{source}"


def _quantisation(found: Quantisation) -> str:
    if not found.modules:
        return found.method or "no"
    by = "" if found.by == "config" else " (by the tensors' names)"
    return f"{found.method or 'yes'}{by}: {', '.join(found.modules)}"


def _bytes(count: int) -> str:
    return f"{count:,} B".replace(",", " ")

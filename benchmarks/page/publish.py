# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""Puts the figures into the page and the README."""

import re
import shutil
from pathlib import Path
from string import Template

from .. import output
from . import goals, head_tables, plots, tables
from .reports import NAMES, Reports

RESULTS = output.REPOSITORY / "benchmarks" / "results"
PAGE = output.REPOSITORY / "docs" / "performance.md"
IMAGES = output.REPOSITORY / "docs" / "images"
README = output.REPOSITORY / "README.md"
TEXT = Path(__file__).with_name("performance.md")
SECTION = re.compile(
    r"(<!-- speed: written by make bench -->\n).*?(<!-- speed: end -->)", re.DOTALL
)


def publish(folder: Path) -> None:
    """Takes over the reports in `folder`, and writes page, pictures and README.

    Raises:
        ValueError: see `Reports.read`; nothing is taken over then.
    """
    Reports.read(folder)
    RESULTS.mkdir(parents=True, exist_ok=True)
    for name in NAMES:
        shutil.copyfile(folder / f"{name}.json", RESULTS / f"{name}.json")
    write()


def write() -> None:
    """Writes page, pictures and README from the reports that were taken over."""
    reports = Reports.read(RESULTS)
    plots.draw_all(reports, IMAGES)
    PAGE.write_text(page(reports))
    README.write_text(with_summary(README.read_text(), summary(reports)))


def page(reports: Reports) -> str:
    """Returns the text of `docs/performance.md`."""
    found = goals.goals(reports)
    return Template(TEXT.read_text()).substitute(
        machine=tables.machine(reports),
        goals=tables.goals(found),
        missed=missed(found),
        tokens=head_tables.tokens(reports),
        widening=head_tables.widening(reports),
        wholes=head_tables.wholes(reports),
        logits=head_tables.logits(reports),
        serving=tables.serving(reports),
        starting=tables.starting(reports),
    )


def missed(found: list[goals.Goal]) -> str:
    """Returns a sentence that counts the goals that were reached."""
    met = sum(goal.met for goal in found)
    if met == len(found):
        return f"All {met} were reached in this run."
    return f"{met} of {len(found)} were reached in this run."


def summary(reports: Reports) -> str:
    """Returns the README's lines."""
    lines = [
        (goal.what, goal.goal, goal.measured, "yes" if goal.met else "no")
        for goal in goals.goals(reports)
        if goal.what.startswith(SUMMARISED)
    ]
    table = tables.table(("what", "goal", "measured", "met"), lines, 4)
    return f"{table}\n\n{POINTER}"


def with_summary(text: str, lines: str) -> str:
    """Returns the README's text with other lines between its marks.

    Raises:
        ValueError: The marks are not there.
    """
    if not SECTION.search(text):
        raise ValueError("README.md has no marks for the figures of make bench")
    return SECTION.sub(lambda found: f"{found[1]}\n{lines}\n\n{found[2]}", text)


POINTER = (
    "[docs/performance.md](docs/performance.md) has all of it, and the commands that "
    "repeat it."
)
SUMMARISED = ("greedy tail", "widening", "peak", "serving")

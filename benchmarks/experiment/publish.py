# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""Where the measured figures stand in the repository, and how they get there."""

import re
import shutil
from pathlib import Path

from .launch import REPOSITORY
from .report import read_report
from .table import tables

REPORT = REPOSITORY / "benchmarks" / "results" / "acceptance.json"
PLOT = REPOSITORY / "docs" / "images" / "acceptance.svg"
PAGE = REPOSITORY / "docs" / "acceptance.md"
SECTION = re.compile(
    r"(<!-- acceptance: written by make acceptance -->\n).*?(<!-- acceptance: end -->)",
    re.DOTALL,
)


def publish(output: Path) -> None:
    """Takes over report, plot and tables from the folder that holds a finished run."""
    for source, place in (("acceptance.json", REPORT), ("acceptance.svg", PLOT)):
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(output / source, place)
    PAGE.write_text(with_tables(PAGE.read_text(), tables(read_report(REPORT))))


def with_tables(text: str, tables_text: str) -> str:
    """Returns the page's text with other tables between its marks.

    Raises:
        ValueError: The marks are not there.
    """
    if not SECTION.search(text):
        raise ValueError(
            "docs/acceptance.md has no marks for the tables of make acceptance"
        )
    return SECTION.sub(lambda found: f"{found[1]}\n{tables_text}\n{found[2]}", text)

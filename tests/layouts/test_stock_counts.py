# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""docs/layouts.md counts every case of this folder, and counts right."""

import importlib
import inspect
import subprocess
import sys
from pathlib import Path

from .drafts import DRAFTS
from .stock import counting, recording
from .stock.outcomes import Case, Outcome

REPOSITORY = Path(__file__).parents[2]
TABLES = counting.DOCUMENT.read_text(encoding="utf-8")


def rows() -> set[str]:
    """First cells of the tables."""
    lines = (line for line in TABLES.splitlines() if line.startswith("| "))
    return {line.removeprefix("| ").split(" | ")[0] for line in lines}


def test_every_public_draft_is_in_the_tables():
    assert {recipe.name for recipe in DRAFTS} - rows() == set()


def test_every_odd_case_is_in_the_tables():
    titles = set()
    for file in recording.TESTS[1:]:
        module = importlib.import_module(f"tests.layouts.{file.removesuffix('.py')}")
        for name, function in vars(module).items():
            is_test = name.startswith("test_") and inspect.isfunction(function)
            source = inspect.getsource(function) if is_test else ""
            if "serve(" in source or "refusal(" in source:
                titles.add(recording.title(name))
    assert titles - rows() == set()


def test_the_fork_does_what_it_should_in_all_of_them():
    tables = [line.strip("| ").split("|") for line in TABLES.splitlines()]
    rows = [[cell.strip() for cell in cells] for cells in tables]
    head = next(cells for cells in rows if cells[0] == "checkpoints")
    counts = [cells for cells in rows if cells[1:] and cells[1].isdigit()]
    counts = [cells for cells in counts if cells[2] == "here"]
    assert len(counts) == 4
    for cells in counts:
        wanted = "refused" if cells[0].endswith("cannot") else "right"
        assert cells[head.index(wanted)] == cells[1]


def case(parameters: str, outcome: Outcome, *, is_sound: bool = True) -> Case:
    return Case("an odd case", parameters, is_sound, outcome, "reason: more")


def test_cases_are_counted_by_outcome_and_told_apart():
    stock = [
        case("a-llama", Outcome.WRONG),
        case("b-llama", Outcome.RIGHT),
        case("a-qwen3", Outcome.RIGHT),
        case("a-deepseek", Outcome.DIES, is_sound=False),
    ]
    here = [
        *(case(c.parameters, Outcome.RIGHT) for c in stock[:3]),
        case("a-deepseek", Outcome.REFUSED, is_sound=False),
    ]
    table = counting.odd_cases(stock, here).splitlines()[2:]
    assert table == [
        "| an odd case | 3 | 2 right (b, a qwen3), 1 wrong numbers (a llama) | right |",
        "| an odd case | 1 | dies at the first step | refused |",
    ]
    counts = counting.counts(stock, here).splitlines()
    assert "| odd cases that can be served | 3 | stock | 2 | 1 |  |  |  |" in counts
    assert "| odd cases that cannot | 1 | here |  |  |  | 1 |  |" in counts


def test_the_command_counts_and_lists():
    """One case, of which stock and the fork make different things."""
    only = "test_a_full_vocabulary_in_another_order and llama"
    done = subprocess.run(
        [sys.executable, "-m", "tests.layouts.stock", "--only", only],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert "| a full vocabulary in another order | 1 | refused | right |" in done.stdout
    assert "| odd cases that can be served | 1 | here | 1 |" in done.stdout

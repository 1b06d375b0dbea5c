# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""The docs show what was measured, with the trained layer that is in the tree."""

import json
from collections.abc import Callable, Iterator

import pytest

from benchmarks.experiment import checks, publish, report, rows, table
from tests.support.example import EXAMPLE


@pytest.fixture(scope="module")
def published() -> list[report.RowResult]:
    return report.read_report(publish.REPORT)


def test_all_rows_were_measured_and_no_fault_was_found(
    published: list[report.RowResult],
) -> None:
    expected = [(row, group.form) for group in rows.long_form() for row in group.rows]

    assert [(result.row, result.form) for result in published] == expected
    assert json.loads(publish.REPORT.read_text())["faults"] == []


@pytest.mark.parametrize("check", [checks.count_faults, checks.equality_faults])
def test_the_published_counts_satisfy_the_checks(
    published: list[report.RowResult],
    check: Callable[[list[report.RowResult]], Iterator[str]],
) -> None:
    for max_tokens in {result.form.max_tokens for result in published}:
        group = [
            result
            for result in published
            if result.form.max_tokens == max_tokens and not result.error
        ]
        assert list(check(group)) == []


def test_the_page_has_the_measured_tables(
    published: list[report.RowResult],
) -> None:
    text = publish.PAGE.read_text()

    assert publish.with_tables(text, table.tables(published)) == text


def test_a_page_without_marks_is_refused() -> None:
    with pytest.raises(ValueError, match="no marks"):
        publish.with_tables("# vllm-eagle3\n", "")


def test_the_figures_are_those_of_the_trained_layer_in_the_tree() -> None:
    measured = json.loads(publish.REPORT.read_text())["models"]["draft-full"]

    assert report.weights_digest(EXAMPLE / "backbone" / report.WEIGHTS) == measured

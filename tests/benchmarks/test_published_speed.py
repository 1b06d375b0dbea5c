# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""The page and the README show the measured speed, and nothing else."""

import re

import pytest

from benchmarks.head.cases import BATCHES, DTYPES, SIZES
from benchmarks.page import plots, publish
from benchmarks.page.reports import Reports
from benchmarks.serving.plan import Plan


@pytest.fixture(scope="module")
def measured() -> Reports:
    return Reports.read(publish.RESULTS)


def test_every_case_was_measured(measured: Reports) -> None:
    expected = {
        (str(size), dtype, batch)
        for size in SIZES
        for dtype in DTYPES
        for batch in BATCHES
    }
    plan = Plan()

    assert {(c.sizes, c.dtype, c.batch) for c in measured.cases()} == expected
    assert [(row.vocabulary, row.concurrency) for row in measured.serving] == [
        (vocabulary, load.concurrency)
        for vocabulary in plan.vocabularies
        for load in plan.loads
    ]


def test_the_page_has_the_measured_figures(measured: Reports) -> None:
    assert publish.PAGE.read_text() == publish.page(measured)


def test_the_readme_has_the_measured_figures(measured: Reports) -> None:
    text = publish.README.read_text()

    assert publish.with_summary(text, publish.summary(measured)) == text


def test_the_page_shows_all_pictures() -> None:
    shown = re.findall(r"\]\(images/(\w+)\.svg\)", publish.PAGE.read_text())

    assert shown == list(plots.PICTURES)
    assert all((publish.IMAGES / f"{name}.svg").is_file() for name in shown)

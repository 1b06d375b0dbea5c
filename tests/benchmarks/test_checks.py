# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""The checks see every way in which the claim can fail."""

from typing import Any

import pytest

from benchmarks.experiment.checks import all_faults, first_difference
from benchmarks.experiment.rows import LONG, LONG_V2

from .made_up import ANSWERS, changed, made_up_results

WRONG_POSITIONS = {"num_accepted_tokens_per_pos": [6, 2, 2]}
FAULTS: dict[str, tuple[str, dict[str, Any], str]] = {
    "it did not start": (
        "fork/v1/default",
        {"error": "ValueError: no"},
        "fork/v1/default failed: ValueError: no",
    ),
    "stock served what it refuses": (
        "stock/v1/full-d2t",
        {"error": ""},
        "stock/v1/full-d2t started; it must be refused",
    ),
    "it was refused for another reason": (
        "stock/v1/full-d2t",
        {"error": "OSError: disk full"},
        "it failed: OSError: disk full",
    ),
    "another runner": (
        "fork/v1/full",
        {"engine": {"runner": "v2"}},
        "runner is 'v2' and must be 'v1'",
    ),
    "the fork in place of stock": (
        "stock/v1/full",
        {"engine": {"implementation": "fork"}},
        "implementation is 'fork' and must be 'stock'",
    ),
    "the fast path remaps": (
        "fork/v1/full",
        {"engine": {"own_remap": True}},
        "own_remap is True and must be False",
    ),
    "the remap was not forced": (
        "fork/v1/full-remapped",
        {"engine": {"forced_remaps": 0}},
        "remap_forced is False and must be True",
    ),
    "drafts of another length": (
        "fork/v1/full",
        {"counts": {"num_draft_tokens": 20}},
        "a draft has not 3 tokens",
    ),
    "a later token accepted more often": (
        "fork/v1/full",
        {"counts": {"num_accepted_tokens_per_pos": [3, 6, 1]}},
        "accepted after a rejected one",
    ),
    "positions that do not add up": (
        "fork/v1/full",
        {"counts": {"num_accepted_tokens": 9}},
        "positions do not add up",
    ),
    "a draft where there is none": (
        "fork/v1/none",
        {"counts": {"num_drafts": 1}},
        "fork/v1/none drafted",
    ),
    "one token of one answer": (
        "fork/v1/reduced",
        {"outputs": [ANSWERS[0], [8, 99], ANSWERS[2]]},
        "question 1, token 1: [99] in place of [9]",
    ),
    "a count of a full vocabulary": (
        "stock/v1/default",
        {"counts": WRONG_POSITIONS},
        "stock/v1/default and fork/v1/full must count the same",
    ),
    "a count of the reduced one": (
        "stock/v1/reduced",
        {"counts": {"num_drafts": 11, "num_draft_tokens": 33}},
        "stock/v1/reduced and fork/v1/reduced must count the same: num_drafts is 11",
    ),
}


def test_results_as_they_must_be_have_no_fault() -> None:
    assert all_faults(made_up_results()) == []


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_found_and_named(fault: str) -> None:
    name, changes, sentence = FAULTS[fault]
    results = changed(made_up_results(), name, LONG.max_tokens, **changes)

    found = all_faults(results)

    assert any(sentence in each for each in found), found
    assert all(f"up to {LONG.max_tokens} tokens" in each for each in found)


def test_both_runners_must_count_the_same() -> None:
    results = changed(
        made_up_results(),
        "fork/v2/full",
        LONG_V2.max_tokens,
        counts=WRONG_POSITIONS,
    )

    (fault,) = all_faults(results)

    assert "num_accepted_tokens_per_pos is [6, 2, 2] and [6, 3, 1]" in fault


def test_counts_of_nothing_are_no_proof() -> None:
    none = {"num_accepted_tokens": 0, "num_accepted_tokens_per_pos": [0, 0, 0]}
    results = changed(made_up_results(), "fork/v1/full", LONG.max_tokens, counts=none)

    assert any("no token was accepted" in each for each in all_faults(results))


def test_without_a_row_that_does_not_speculate_nothing_is_shown() -> None:
    results = [r for r in made_up_results() if r.row.name != "fork/v2/none"]
    alone = [r for r in results if r.row.runner == "v2"]

    assert any("no row without speculation" in each for each in all_faults(alone))


@pytest.mark.parametrize(
    "found, words",
    [
        ([[1, 2, 3]], "1 answers in place of 2"),
        ([[1, 2], [4]], "question 0, token 2: [] in place of [3]"),
        ([[1, 2, 3, 9], [4]], "question 0, token 3: [9] in place of []"),
        ([[1, 2, 3], []], "question 1, token 0: [] in place of [4]"),
    ],
)
def test_the_first_difference_is_said(found: list[list[int]], words: str) -> None:
    assert first_difference([[1, 2, 3], [4]], found) == words

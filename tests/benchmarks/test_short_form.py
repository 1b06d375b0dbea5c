# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""PR #53458's claim on a real model: leaving out the remap changes nothing at all.

Nine engines: the fork's on both runners, and stock vLLM beside it.
"""

import pytest

from benchmarks.experiment import checks, rows

from .short_form import ShortForm

pytestmark = pytest.mark.engine

# One full vocabulary, however a checkpoint says so, whoever serves it.
EQUAL = [
    "fork/v1/full-remapped",
    "fork/v1/default",
    "fork/v1/full-d2t",
    "fork/v2/full",
    "stock/v1/full",
]


def test_no_check_of_the_experiment_finds_a_fault(short_form: ShortForm) -> None:
    assert checks.all_faults(list(short_form.results)) == []


@pytest.mark.parametrize("name", EQUAL)
def test_a_full_vocabulary_counts_exactly_as_the_fast_path(
    short_form: ShortForm, name: str
) -> None:
    assert short_form.row(name).counts == short_form.row("fork/v1/full").counts


@pytest.mark.parametrize("name", ["fork/v1/full", *EQUAL, "fork/v1/reduced"])
def test_output_is_the_one_without_speculation(
    short_form: ShortForm, name: str
) -> None:
    assert short_form.row(name).outputs == short_form.row("fork/v1/none").outputs


def test_the_fast_path_does_not_remap_and_the_forced_one_does(
    short_form: ShortForm,
) -> None:
    fast = short_form.row("fork/v1/full").engine
    forced = short_form.row("fork/v1/full-remapped").engine

    assert not fast["own_remap"] and not fast["forced_remaps"]
    # At least once per draft token of the longest answer.
    assert forced["forced_remaps"] >= rows.SPEC_TOKENS


def test_the_trained_draft_is_worth_having(short_form: ShortForm) -> None:
    """So equal counts are counts of something; a reduced vocabulary costs some."""
    full = short_form.row("fork/v1/full")
    reduced = short_form.row("fork/v1/reduced")

    assert full.counts["num_accepted_tokens"] > 0.1 * full.counts["num_draft_tokens"]
    assert reduced.counts != full.counts
    assert reduced.counts["num_accepted_tokens"] > 0


def test_stock_vllm_refuses_a_full_vocabulary_with_a_d2t(
    short_form: ShortForm,
) -> None:
    assert rows.STOCK_REFUSAL in short_form.row("stock/v1/full-d2t").error


def test_an_answer_ended_by_itself_and_another_was_cut(short_form: ShortForm) -> None:
    """Both ends of an answer are among those that were counted."""
    lengths = [len(answer) for answer in short_form.row("fork/v1/none").outputs]

    assert max(lengths) == short_form.max_tokens
    assert min(lengths) < short_form.max_tokens

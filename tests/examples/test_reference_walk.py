# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""How the walk counts, on proposals written down by hand.

That its proposals and counts are the served ones is a matter of `tests/benchmarks`.
"""

from types import ModuleType

import pytest
import torch

from tests.support.example import Example

# Two tokens of a prompt, an answer of seven, and three that the target would add.
TEXT = [90, 91, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10]
START, END = 2, 9
# What follows each token of the answer.
PERFECT = [[token + 1, token + 2, token + 3] for token in range(1, 8)]


@pytest.fixture
def walk(example: Example) -> ModuleType:
    return example("reference_walk")


def counts_of(walk: ModuleType, proposals: list[list[int]], end: int = END) -> object:
    tokens = torch.tensor(TEXT)
    reading = walk.Reading(tokens, START, end, tokens, torch.empty(0))
    return walk.walk(reading, torch.tensor(proposals))


def test_a_perfect_draft_saves_three_steps_of_four(walk: ModuleType) -> None:
    # 1 comes from the prompt; 2 3 4 and 5; 6 7 and, beyond the end, 8.
    assert counts_of(walk, PERFECT) == walk.Counts(2, 6, 6, (2, 2, 2))


def test_a_wrong_draft_costs_a_step_for_each_token_but_the_first(
    walk: ModuleType,
) -> None:
    assert counts_of(walk, [[0, 0, 0]] * 7) == walk.Counts(6, 18, 0, (0, 0, 0))


def test_what_follows_a_wrong_proposal_is_not_accepted(walk: ModuleType) -> None:
    proposals = [[token + 1, 0, token + 3] for token in range(1, 8)]

    # 1; 2 and 3; 4 and 5; 6 and 7.
    assert counts_of(walk, proposals) == walk.Counts(3, 9, 3, (3, 0, 0))


def test_a_step_starts_from_the_newest_token(walk: ModuleType) -> None:
    proposals = [[0, 0, 0] for _ in PERFECT]
    proposals[1] = [3, 4, 0]  # after the 2, which the first step brings
    proposals[4] = [6, 0, 0]  # after the 5, which the second step ends with

    # 1; 2; 3 4 and 5; 6 and 7.
    assert counts_of(walk, proposals) == walk.Counts(3, 9, 3, (2, 1, 0))


def test_an_answer_of_one_token_is_never_drafted(walk: ModuleType) -> None:
    assert counts_of(walk, PERFECT[:1], end=START + 1) == walk.Counts(
        0, 0, 0, (0, 0, 0)
    )


def test_totals_add_up(walk: ModuleType) -> None:
    parts = [walk.Counts(2, 6, 6, (2, 2, 2)), walk.Counts(3, 9, 3, (2, 1, 0))]

    assert walk.total(parts) == walk.Counts(5, 15, 9, (4, 3, 2))
    assert walk.total(parts).acceptance_length == 1 + 9 / 5

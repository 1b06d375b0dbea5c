# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""A second implementation of the draft predicts exactly what vLLM counted.

It has no line in common with vLLM or the fork, and reads nothing but the prompts and
the answers that were served.
"""

from collections.abc import Callable, Sequence
from dataclasses import asdict
from types import ModuleType
from typing import Any

import pytest

from tests.support.example import Example, Models

AUX_LAYERS = (2, 15, 27)
# One earlier each, as a numbering by layers' outputs would have it.
OTHER_LAYERS = (1, 14, 26)

Predict = Callable[..., dict[str, Any]]


@pytest.fixture
def reference(example: Example) -> ModuleType:
    return example("reference")


@pytest.fixture
def predict(example: Example) -> Predict:
    """Walks along requests; returns counts as the engine's row has them."""
    walk = example("reference_walk")

    def predict(target: Any, draft: Any, requests: Sequence[Any]) -> dict[str, Any]:
        readings = map(target.read, requests)
        counts = [walk.walk(each, draft.propose(each)) for each in readings]
        found = asdict(walk.total(counts))
        found["num_accepted_tokens_per_pos"] = list(
            found["num_accepted_tokens_per_pos"]
        )
        return found

    return predict


def served(reference: ModuleType, short_form: Any, row: str) -> list[Any]:
    answers = short_form.row(row).outputs
    return [
        reference.Request(tuple(prompt), tuple(answer))
        for prompt, answer in zip(short_form.prompts, answers, strict=True)
    ]


@pytest.mark.engine
@pytest.mark.parametrize("vocabulary", ["full", "reduced"])
def test_the_walk_predicts_what_vllm_counted(
    reference: ModuleType,
    predict: Predict,
    models: Models,
    short_form: Any,
    vocabulary: str,
) -> None:
    row = f"fork/v1/{vocabulary}"
    target = reference.Target(models.target, AUX_LAYERS)
    draft = reference.Draft(models.draft(vocabulary), target)

    predicted = predict(target, draft, served(reference, short_form, row))

    assert predicted == short_form.row(row).counts


@pytest.mark.engine
def test_a_walk_that_hands_over_other_layers_predicts_something_else(
    reference: ModuleType, predict: Predict, models: Models, short_form: Any
) -> None:
    """Shows that the equality above is none of numbers that come out anyway."""
    row = "fork/v1/full"
    target = reference.Target(models.target, OTHER_LAYERS)
    draft = reference.Draft(models.draft("full"), target)

    predicted = predict(target, draft, served(reference, short_form, row))

    assert predicted != short_form.row(row).counts


@pytest.mark.engine
def test_the_reference_target_would_have_answered_the_same(
    reference: ModuleType, models: Models, short_form: Any
) -> None:
    target = reference.Target(models.target, AUX_LAYERS)
    for request in served(reference, short_form, "fork/v1/none"):
        reading = target.read(request)
        choices = reading.choices[reading.start - 1 : reading.end - 1]
        assert choices.tolist() == list(request.answer)

# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""Results as the long form would give them, from no engine."""

from dataclasses import replace
from typing import Any

from benchmarks.experiment.results import RowResult, answered
from benchmarks.experiment.rows import Form, Row, long_form

ANSWERS = [[5, 6, 7, 2], [8, 9], [10, 11, 12]]
ACCEPTED = {"full": [6, 3, 1], "reduced": [5, 2, 1]}
DRAFTS = 10


def made_up_results() -> list[RowResult]:
    """Returns results without a fault for all rows of the long form."""
    return [made_up(row, group.form) for group in long_form() for row in group.rows]


def made_up(row: Row, form: Form) -> RowResult:
    """Returns what the row must give, more or less."""
    if row.refusal:
        return RowResult(row, form, error=f"ValueError: There is {row.refusal} in it")
    return RowResult(
        row, form, counts=_counts(row), engine=_engine(row), **answered(ANSWERS)
    )


def _counts(row: Row) -> dict[str, Any]:
    if row.draft == "none":
        return {}
    accepted = ACCEPTED[row.logits]
    return {
        "num_drafts": DRAFTS,
        "num_draft_tokens": 3 * DRAFTS,
        "num_accepted_tokens": sum(accepted),
        "num_accepted_tokens_per_pos": accepted,
    }


def _engine(row: Row) -> dict[str, Any]:
    if row.draft == "none":
        return {"runner": row.runner}
    return {
        "runner": row.runner,
        "implementation": row.implementation,
        "own_remap": row.draft == "reduced",
        "forced_remaps": 21 * row.remapped,
    }


def changed(
    results: list[RowResult], name: str, max_tokens: int, **changes: Any
) -> list[RowResult]:
    """Returns the results with one row changed.

    Args:
        results: What to change.
        name: Name of the row.
        max_tokens: Length of its answers.
        changes: New values of attributes; those of a dict attribute are merged.
    """
    (at,) = (
        number
        for number, result in enumerate(results)
        if result.row.name == name and result.form.max_tokens == max_tokens
    )
    merged = {
        key: getattr(results[at], key) | value if isinstance(value, dict) else value
        for key, value in changes.items()
    }
    return [*results[:at], replace(results[at], **merged), *results[at + 1 :]]

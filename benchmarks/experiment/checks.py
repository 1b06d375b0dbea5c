# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""Does the claim hold? Every function returns sentences, one for each way it does not.

Rows are compared within one length of answer, whoever ran them: fork and stock, V1 and
V2. There, rows of equal logits must have equal counts, and all rows the output of the
row without speculation.
"""

from collections.abc import Iterator

from .results import COUNTERS, RowResult
from .rows import SPEC_TOKENS

Results = list[RowResult]


def all_faults(results: Results) -> list[str]:
    """Returns what is wrong with the results; nothing if the claim holds."""
    faults: list[str] = []
    for max_tokens in sorted({result.form.max_tokens for result in results}):
        group = [r for r in results if r.form.max_tokens == max_tokens]
        started = [r for r in group if not r.error]
        found = [*start_faults(group), *setting_faults(started)]
        if not found:
            found = [
                *count_faults(started),
                *output_faults(started),
                *equality_faults(started),
            ]
        faults += [f"{fault} (answers of up to {max_tokens} tokens)" for fault in found]
    return faults


def start_faults(results: Results) -> Iterator[str]:
    """Engines that must start and do not, or the reverse."""
    for result in results:
        name, refusal = result.row.name, result.row.refusal
        if not refusal and result.error:
            yield f"{name} failed: {result.error}"
        elif refusal and not result.error:
            yield f"{name} started; it must be refused with: {refusal}"
        elif refusal not in result.error:
            yield f"{name} must be refused with: {refusal}; it failed: {result.error}"


def setting_faults(results: Results) -> Iterator[str]:
    """Rows that ran something else than what they are named for."""
    for result in results:
        row = result.row
        expected: dict[str, object] = {"runner": row.runner}
        if row.draft != "none":
            expected |= {
                "implementation": row.implementation,
                "own_remap": row.draft == "reduced",
                "remap_forced": row.remapped,
            }
        found = dict(result.engine)
        found["remap_forced"] = found.pop("forced_remaps", 0) > 0
        for key, value in expected.items():
            if found.get(key) != value:
                yield f"{row.name}: {key} is {found.get(key)!r} and must be {value!r}"


def count_faults(results: Results) -> Iterator[str]:
    """Counters that do not fit each other, or that nothing could be told from."""
    for result in results:
        name, counts = result.row.name, result.counts
        if result.row.draft == "none":
            if counts:
                yield f"{name} drafted: {counts}"
            continue
        per_position = counts["num_accepted_tokens_per_pos"]
        if counts["num_draft_tokens"] != SPEC_TOKENS * counts["num_drafts"]:
            yield f"{name}: a draft has not {SPEC_TOKENS} tokens: {counts}"
        if len(per_position) != SPEC_TOKENS or sorted(per_position)[::-1] != (
            per_position
        ):
            yield f"{name}: a token was accepted after a rejected one: {counts}"
        if counts["num_accepted_tokens"] != sum(per_position):
            yield f"{name}: positions do not add up: {counts}"
        if not counts["num_accepted_tokens"]:
            yield f"{name}: no token was accepted, so equal counts say nothing"


def output_faults(results: Results) -> Iterator[str]:
    """Answers that differ from those without speculation."""
    plain = next((r for r in results if r.row.draft == "none"), None)
    if plain is None:
        yield "there is no row without speculation to compare with"
        return
    for result in results:
        if result.outputs != plain.outputs:
            yield (
                f"{result.row.name} answers differently from {plain.row.name}: "
                f"{first_difference(plain.outputs, result.outputs)}"
            )


def equality_faults(results: Results) -> Iterator[str]:
    """Counts that differ between rows of equal logits."""
    for logits in ("full", "reduced"):
        rows = [r for r in results if r.row.logits == logits]
        for other in rows[1:]:
            yield from _different_counts(rows[0], other)


def _different_counts(first: RowResult, other: RowResult) -> Iterator[str]:
    for name in COUNTERS:
        if first.counts[name] != other.counts[name]:
            yield (
                f"{other.row.name} and {first.row.name} must count the same: {name} is "
                f"{other.counts[name]} and {first.counts[name]}"
            )


def first_difference(expected: list[list[int]], found: list[list[int]]) -> str:
    """Says where two lists of answers first differ."""
    if len(expected) != len(found):
        return f"{len(found)} answers in place of {len(expected)}"
    for number, (right, wrong) in enumerate(zip(expected, found, strict=True)):
        if right != wrong:
            at = _first_unequal(right, wrong)
            return (
                f"question {number}, token {at}: {wrong[at : at + 3]} in place of "
                f"{right[at : at + 3]}"
            )
    return "no difference"


def _first_unequal(first: list[int], second: list[int]) -> int:
    for at, (one, other) in enumerate(zip(first, second, strict=False)):
        if one != other:
            return at
    return min(len(first), len(second))

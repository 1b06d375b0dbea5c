# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""The results as a Markdown table, which reads well in a terminal too."""

from collections.abc import Sequence

from .results import RowResult

HEAD = (
    "vLLM",
    "runner",
    "draft",
    "drafts",
    "draft tokens",
    "accepted",
    "by position",
    "acceptance length",
    "output",
)
# Digits of a digest that tell outputs apart.
DIGEST = 8
KINDS = {
    "none": "none",
    "full": "full",
    "full-remapped": "full, remap forced",
    "default": "default",
    "full-d2t": "full with `d2t`",
    "reduced": "reduced",
}
RIGHT = range(3, len(HEAD) - 1)


def tables(results: Sequence[RowResult]) -> str:
    """Returns a table for each length of answer, under a line that names it."""
    parts = []
    for form in dict.fromkeys(result.form for result in results):
        rows = [result for result in results if result.form == form]
        tokens = max(result.output_tokens for result in rows)
        title = (
            f"{form.prompts} questions, answers of up to {form.max_tokens} tokens "
            f"({tokens:,} tokens in all):"
        )
        parts.append(f"{title}\n\n{table(rows)}")
    return "\n\n".join(parts) + "\n"


def table(results: Sequence[RowResult]) -> str:
    """Returns one table, columns padded to equal width."""
    lines = [HEAD, *(cells(result) for result in results)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    rule = [
        "-" * (width - 1) + ":" if column in RIGHT else "-" * width
        for column, width in enumerate(widths)
    ]
    padded = [_padded(line, widths) for line in (lines[0], rule, *lines[1:])]
    return "\n".join(f"| {' | '.join(line)} |" for line in padded)


def cells(result: RowResult) -> tuple[str, ...]:
    """Returns what stands in a row's line."""
    row, counts = result.row, result.counts
    name = "stock" if row.implementation == "stock" else "this fork"
    head = (name, row.runner.upper(), KINDS[row.kind])
    if result.error:
        return (*head, *("" for _ in RIGHT), "does not load")
    digest = f"`{result.output_digest[:DIGEST]}`"
    if not counts:
        return (*head, *("" for _ in RIGHT), digest)
    return (
        *head,
        f"{counts['num_drafts']:,}",
        f"{counts['num_draft_tokens']:,}",
        f"{counts['num_accepted_tokens']:,}",
        " / ".join(map(str, counts["num_accepted_tokens_per_pos"])),
        f"{result.acceptance_length:.2f}",
        digest,
    )


def _padded(line: Sequence[str], widths: Sequence[int]) -> list[str]:
    return [
        cell.rjust(width) if column in RIGHT else cell.ljust(width)
        for column, (cell, width) in enumerate(zip(line, widths, strict=True))
    ]

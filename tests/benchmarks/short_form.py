# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""The experiment on eight questions, run once for all tests that look at it."""

from dataclasses import dataclass

from benchmarks.experiment.results import RowResult
from benchmarks.experiment.rows import SHORT, SPEC_TOKENS


@dataclass(frozen=True)
class ShortForm:
    """What was asked, and what each engine gave.

    Attributes:
        prompts: Token ids of each question, in the target's chat format.
        results: One per row.
    """

    prompts: tuple[tuple[int, ...], ...]
    results: tuple[RowResult, ...]
    max_tokens: int = SHORT.max_tokens
    spec_tokens: int = SPEC_TOKENS

    def row(self, name: str) -> RowResult:
        """Returns the row of this name, such as `fork/v1/full`."""
        (found,) = (result for result in self.results if result.row.name == name)
        return found

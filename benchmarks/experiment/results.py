# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""What a row gave, as plain data that survives a trip through JSON."""

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from .rows import Form, Row

# vLLM's names for them, after `vllm:spec_decode_`.
COUNTERS = (
    "num_drafts",
    "num_draft_tokens",
    "num_accepted_tokens",
    "num_accepted_tokens_per_pos",
)


@dataclass(frozen=True)
class RowResult:
    """What one engine did.

    Attributes:
        row: Which engine.
        form: How long it was asked to work.
        seconds: From the engine's start to its end.
        error: Why it did not start or ended early; empty if it ran.
        counts: vLLM's counters under the names in `COUNTERS`; empty without a draft.
        engine: What the worker says about itself, see `engine.describe`.
        outputs: Token ids of each answer, the end-of-text id included; a report has
            none.
        output_tokens: How many they are.
        output_digest: SHA-256 over all of them.
    """

    row: Row
    form: Form
    seconds: float = 0.0
    error: str = ""
    counts: dict[str, Any] = field(default_factory=dict)
    engine: dict[str, Any] = field(default_factory=dict)
    outputs: list[list[int]] = field(default_factory=list)
    output_tokens: int = 0
    output_digest: str = ""

    @property
    def acceptance_length(self) -> float:
        """Tokens that a verification gives: the accepted ones, and one more."""
        return 1 + self.counts["num_accepted_tokens"] / self.counts["num_drafts"]

    @property
    def acceptance_by_position(self) -> list[float]:
        """Share of the drafts whose first, second, … token was accepted."""
        per_position = self.counts["num_accepted_tokens_per_pos"]
        return [accepted / self.counts["num_drafts"] for accepted in per_position]

    def summary(self) -> dict[str, Any]:
        """Returns the row for a report, without the answers."""
        summary = {"name": self.row.name} | asdict(self)
        del summary["outputs"]
        if self.counts:
            summary["mean_acceptance_length"] = round(self.acceptance_length, 4)
        return summary


def from_json(data: dict[str, Any]) -> RowResult:
    """Returns the result that `asdict` or `RowResult.summary` gave the data of."""
    known = set(RowResult.__dataclass_fields__)
    values = {name: value for name, value in data.items() if name in known}
    return RowResult(
        **values | {"row": Row(**data["row"]), "form": Form(**data["form"])}
    )


def answered(outputs: list[list[int]]) -> dict[str, Any]:
    """Returns the values of a `RowResult` that answers decide."""
    return {
        "outputs": outputs,
        "output_tokens": sum(map(len, outputs)),
        "output_digest": digest_of(outputs),
    }


def digest_of(outputs: Iterable[Sequence[int]]) -> str:
    """Returns a SHA-256 that differs for any change of any token."""
    digest = hashlib.sha256()
    for output in outputs:
        digest.update(json.dumps(list(output)).encode() + b"\n")
    return digest.hexdigest()


def write_results(results: Iterable[RowResult], file: Path) -> None:
    file.write_text(json.dumps([asdict(result) for result in results]) + "\n")


def read_results(file: Path) -> list[RowResult]:
    return [from_json(data) for data in json.loads(file.read_text())]

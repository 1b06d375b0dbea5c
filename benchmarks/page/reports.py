# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""The three reports, read back, and how to find a row in them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from .. import output
from ..head import results as head
from ..head.results import TOKEN, Row
from ..serving import results as serving
from ..starting import results as starting

NAMES = ("draft_head", "serve", "startup")
# The steps of the fork, the faster one first.
FORK_STEPS = ("ours, native", "ours, PyTorch")


@dataclass(frozen=True)
class Case:
    """What rows of the draft head have in common: one draft at one batch size."""

    sizes: str
    dtype: str
    batch: int

    @property
    def draft(self) -> int:
        return int(self.sizes.split("/")[0])

    @property
    def target(self) -> int:
        return int(self.sizes.split("/")[1])

    @property
    def reduced(self) -> bool:
        return self.draft < self.target


@dataclass(frozen=True)
class Reports:
    """All that was measured.

    Attributes:
        machine: what on.
        head, serving, starting: rows.
    """

    machine: dict[str, str]
    head: tuple[head.Row, ...]
    serving: tuple[serving.Row, ...]
    starting: tuple[starting.Row, ...]

    @classmethod
    def read(cls, folder: Path) -> "Reports":
        """Reads the reports of one machine.

        Raises:
            ValueError: they are of different ones.
        """
        found = {name: output.read(folder, name) for name in NAMES}
        machines = [found[name]["machine"] for name in NAMES]
        if machines[1:] != machines[:-1]:
            raise ValueError(
                f"the reports in {folder} were not measured on the same machine with "
                "the same versions; run `make bench`, which makes all three"
            )
        return cls(
            machines[0],
            tuple(map(head.Row.read, found["draft_head"]["rows"])),
            tuple(map(serving.Row.read, found["serve"]["rows"])),
            tuple(map(starting.Row.read, found["startup"]["rows"])),
        )

    def cases(self) -> list[Case]:
        """Of the draft head, in the order in which they were measured."""
        keys = ((row.sizes, row.dtype, row.batch) for row in self.head)
        return [Case(*key) for key in dict.fromkeys(keys)]

    def steps(self, case: Case, kind: str) -> dict[str, Row]:
        """The rows of one case and kind, by step."""
        return {row.step: row for row in self._of(case) if row.kind == kind}

    def ours(self, case: Case, kind: str = TOKEN) -> Row:
        """The fork's row as it runs: native where that was built."""
        return best(self.steps(case, kind))

    def _of(self, case: Case) -> Iterator[Row]:
        for row in self.head:
            if (row.sizes, row.dtype, row.batch) == (
                case.sizes,
                case.dtype,
                case.batch,
            ):
                yield row


def best(steps: dict[str, Row]) -> Row:
    """The fork's row among those of one case."""
    return next(steps[name] for name in FORK_STEPS if name in steps)


def pick(
    cases: Sequence[Case], *, batches: Sequence[int] = (64,), reduced: bool = True
) -> list[Case]:
    """Those with one of these batch sizes and such a vocabulary."""
    return [c for c in cases if c.batch in batches and c.reduced == reduced]

# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""What starting comes to, as plain data and back."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..spread import Spread

# Stages of `probe.py`, and what they are called in a table.
STAGES = {
    "import": "`import vllm`",
    "entrypoint": "`from vllm import LLM`",
    "plugins": "loading vLLM's plugins",
    "engine": "`LLM(...)` after that",
    "total": "all of it",
}
_SPREADS = ("stock", "fork", "added", "ratio")


@dataclass(frozen=True)
class Row:
    """One stage, without and with the overlay.

    Attributes:
        start: what was started: `import` or `engine`.
        stock, fork: seconds.
        added: seconds of the fork less those of stock, started one after the other.
        ratio: their quotient.
    """

    start: str
    stage: str
    stock: Spread
    fork: Spread
    added: Spread
    ratio: Spread

    @classmethod
    def of(
        cls, start: str, stage: str, stock: Sequence[float], fork: Sequence[float]
    ) -> "Row":
        pairs = zip(fork, stock, strict=True)
        return cls(
            start,
            stage,
            Spread.of(stock),
            Spread.of(fork),
            Spread.of([one - other for one, other in pairs]),
            Spread.of_ratios(fork, stock),
        )

    @classmethod
    def read(cls, data: Mapping[str, Any]) -> "Row":
        """Takes back what `dataclasses.asdict` made of one."""
        return cls(**{**data, **{name: Spread.read(data[name]) for name in _SPREADS}})

    def __str__(self) -> str:
        return (
            f"{self.start}, {self.stage}: stock {self.stock.median:.2f} s, fork "
            f"{self.fork.median:.2f} s, added {self.added.show('.3f')} s"
        )

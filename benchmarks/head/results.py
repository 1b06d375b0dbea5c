# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""What `benchmarks/draft_head.py` finds, as plain data and back."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..spread import Spread

TOKEN = "token from logits"
WIDE = "wide from logits"
TOKEN_WHOLE = "token from states"
WIDE_WHOLE = "wide from states"
_SPREADS = ("seconds", "speedup", "of_base")


@dataclass(frozen=True)
class Row:
    """One way, for one draft and batch.

    Attributes:
        sizes: as `D/T/H`.
        kind: one of those above.
        step: name of the way.
        speedup: stock's time over this one's, in the same round.
        of_base: this time over that of a plain copy of `[B, T]` (from logits), or of
            the head alone (from states).
        floor_seconds: for the bytes that must move, at the bandwidth of a copy.
        peak_bytes: allocated beyond what the step is given.
    """

    sizes: str
    dtype: str
    batch: int
    kind: str
    step: str
    seconds: Spread
    speedup: Spread | None = None
    of_base: Spread | None = None
    floor_seconds: float | None = None
    peak_bytes: int | None = None

    @classmethod
    def read(cls, data: Mapping[str, Any]) -> "Row":
        """Takes back what `dataclasses.asdict` made of one."""
        spreads = {name: Spread.read(data[name]) for name in _SPREADS if data[name]}
        return cls(**{**data, **spreads})

    def __str__(self) -> str:
        text = f"{self.kind}, {self.step}: {1000 * self.seconds.median:.3f} ms"
        if self.speedup is not None:
            text += f", {self.speedup.median:.2f} times as fast as stock"
        return f"{self.sizes} {self.dtype} B={self.batch} {text}"

# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""What repeated measurements come to: the median, with the quartiles as its spread."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median, quantiles
from typing import Any


@dataclass(frozen=True)
class Spread:
    """Of one quantity, in whatever unit it was given in.

    Attributes:
        low, high: the first and the third quartile.
        count: of measurements.
    """

    median: float
    low: float
    high: float
    count: int

    @classmethod
    def of(cls, values: Sequence[float]) -> "Spread":
        """Summarises at least one measurement."""
        low, high = values[0], values[0]
        if len(values) > 1:
            low, _, high = quantiles(values, n=4, method="inclusive")
        return cls(median(values), low, high, len(values))

    @classmethod
    def of_ratios(cls, above: Sequence[float], below: Sequence[float]) -> "Spread":
        """Of quotients of measurements that were made one after the other.

        A machine that is slow for a while is slow for both, and their quotient stays.
        """
        return cls.of([one / other for one, other in zip(above, below, strict=True)])

    @classmethod
    def read(cls, data: Mapping[str, Any]) -> "Spread":
        """Takes back what `dataclasses.asdict` made of one."""
        return cls(**data)

    def show(self, form: str = ".2f") -> str:
        """Median and quartiles, such as `1.02 (0.99–1.04)`."""
        low, high = format(self.low, form), format(self.high, form)
        return f"{self.median:{form}} ({low}–{high})"

# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""What serving comes to, as plain data and back."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..spread import Spread
from .plan import FORK, STOCK, Load


@dataclass(frozen=True)
class Measured:
    """One measurement of one server.

    Attributes:
        throughput: tokens per second, over all requests.
        latency_s: mean time between two parts of an answer, each of which may hold
            several tokens.
        drafts, accepted: by the server's own counters.
    """

    throughput: float
    latency_s: float
    drafts: int
    accepted: int


@dataclass(frozen=True)
class Side:
    """One server's rounds together."""

    throughput: Spread
    latency_s: Spread
    acceptance_length: float

    @classmethod
    def of(cls, rounds: Sequence[Measured]) -> "Side":
        drafts = sum(one.drafts for one in rounds)
        return cls(
            Spread.of([one.throughput for one in rounds]),
            Spread.of([one.latency_s for one in rounds]),
            1 + sum(one.accepted for one in rounds) / drafts,
        )

    @classmethod
    def read(cls, data: Mapping[str, Any]) -> "Side":
        spreads = {
            name: Spread.read(data[name]) for name in ("throughput", "latency_s")
        }
        return cls(**{**data, **spreads})


@dataclass(frozen=True)
class Row:
    """Stock and fork under one load.

    Attributes:
        ratio: the fork's throughput over stock's, from measurements one after the
            other.
    """

    vocabulary: str
    concurrency: int
    requests: int
    tokens: int
    stock: Side
    fork: Side
    ratio: Spread

    @classmethod
    def of(
        cls, vocabulary: str, load: Load, rounds: Sequence[Mapping[str, Measured]]
    ) -> "Row":
        """Args: rounds: by `plan.STOCK` and `plan.FORK`."""
        stock = [one[STOCK] for one in rounds]
        fork = [one[FORK] for one in rounds]
        ratio = Spread.of_ratios(
            [one.throughput for one in fork], [one.throughput for one in stock]
        )
        return cls(
            vocabulary,
            load.concurrency,
            load.requests,
            load.tokens,
            Side.of(stock),
            Side.of(fork),
            ratio,
        )

    @classmethod
    def read(cls, data: Mapping[str, Any]) -> "Row":
        """Takes back what `dataclasses.asdict` made of one."""
        sides = {name: Side.read(data[name]) for name in (STOCK, FORK)}
        return cls(**{**data, **sides, "ratio": Spread.read(data["ratio"])})

    def __str__(self) -> str:
        return (
            f"{self.vocabulary}, {self.concurrency} at a time: stock "
            f"{self.stock.throughput.median:.1f}, fork "
            f"{self.fork.throughput.median:.1f} tokens/s, {self.ratio.show('.3f')}"
        )

# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""Which servers, how many requests at a time, how long answers, how often."""

from dataclasses import dataclass, field

FORK, STOCK = "fork", "stock"
VOCABULARIES = ("full", "reduced")


@dataclass(frozen=True)
class Load:
    """What one measurement sends.

    Attributes:
        concurrency: requests at a time.
        requests: of them in all.
        tokens: of each answer.
    """

    concurrency: int
    requests: int
    tokens: int


@dataclass(frozen=True)
class Plan:
    """All of it.

    Attributes:
        rounds: each measures stock and fork once, with every load.
    """

    rounds: int = 8
    loads: tuple[Load, ...] = field(
        default=(Load(1, 1, 24), Load(4, 4, 16), Load(16, 16, 12))
    )
    vocabularies: tuple[str, ...] = VOCABULARIES

    @property
    def measurements(self) -> int:
        return self.rounds * len(self.loads) * len(self.vocabularies) * 2


SHORT = Plan(
    rounds=2, loads=(Load(1, 1, 16), Load(4, 4, 16)), vocabularies=("reduced",)
)


def order(number: int) -> tuple[str, str]:
    """Who goes first in a round: in turn, so that going first favours nobody."""
    return (FORK, STOCK) if number % 2 else (STOCK, FORK)

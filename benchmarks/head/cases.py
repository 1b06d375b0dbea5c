# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""What is measured: vocabularies of real drafts, batches, dtypes."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch


@dataclass(frozen=True)
class Sizes:
    """A draft's vocabulary, its target's, and its hidden size."""

    draft: int
    target: int
    hidden: int

    @property
    def reduced(self) -> bool:
        return self.draft < self.target

    def __str__(self) -> str:
        return f"{self.draft}/{self.target}/{self.hidden}"


SIZES = (
    Sizes(8192, 49152, 576),
    Sizes(32000, 128256, 4096),
    Sizes(64000, 201088, 2880),
    Sizes(151936, 151936, 2048),
    Sizes(163840, 163840, 7168),
)
# Those that the goals are about.
REDUCED, FULL = SIZES[1], SIZES[3]
BATCHES = (1, 8, 64, 256)
DTYPES = {"bfloat16": torch.bfloat16, "float32": torch.float32}


@dataclass(frozen=True)
class Case:
    """One draft at one batch size, in one dtype."""

    sizes: Sizes
    batch: int
    dtype: str

    @property
    def torch_dtype(self) -> torch.dtype:
        return DTYPES[self.dtype]

    @property
    def logit_bytes(self) -> int:
        """Of the draft's logits."""
        return self.batch * self.sizes.draft * self.torch_dtype.itemsize

    @property
    def wide_bytes(self) -> int:
        """Of logits over the target's ids."""
        return self.batch * self.sizes.target * self.torch_dtype.itemsize

    def __str__(self) -> str:
        return f"{self.sizes} {self.dtype} B={self.batch}"


@dataclass(frozen=True)
class Draft:
    """Cases that share a head, which may have gigabytes."""

    sizes: Sizes
    dtype: str
    batches: Sequence[int] = BATCHES

    def cases(self) -> Iterator[Case]:
        for batch in self.batches:
            yield Case(self.sizes, batch, self.dtype)


def drafts(*, short: bool) -> list[Draft]:
    """All combinations, or the few that the goals are about."""
    sizes = (REDUCED, FULL) if short else SIZES
    batches = (64,) if short else BATCHES
    return [Draft(size, dtype, batches) for size in sizes for dtype in DTYPES]

# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""What is measured: vocabularies of real drafts, batches, dtypes."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

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


def cases(*, short: bool) -> Iterator[Case]:
    """All combinations, or the two that the goals are about."""
    sizes = [SIZES[1], SIZES[3]] if short else SIZES
    batches = (64,) if short else BATCHES
    for size, dtype, batch in product(sizes, DTYPES, batches):
        yield Case(size, batch, dtype)

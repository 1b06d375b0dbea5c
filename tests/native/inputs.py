# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""Logits and maps on which operators can go wrong."""

import torch

DTYPES = (torch.float32, torch.bfloat16, torch.float16)
_BITS = {4: torch.int32, 2: torch.int16}

# (tokens, D, T): single elements, sizes around vectors, blocks and segments, a full
# vocabulary, and one of a real draft.
SIZES = (
    (1, 1, 1),
    (3, 1, 7),
    (2, 7, 8),
    (5, 63, 1000),
    (1, 1024, 1025),
    (4, 31, 33),
    (4, 1025, 4096),
    (9, 1000, 1000),
    (3, 32768, 40000),
    (3, 70001, 70003),
    (4, 32000, 128256),
)


def bits(tensor: torch.Tensor) -> torch.Tensor:
    """To compare what `==` cannot: NaN, and the sign of zero."""
    return tensor.view(_BITS[tensor.element_size()])


def random_map(draft: int, target: int, *, increasing: bool = False) -> torch.Tensor:
    """int64 `[D]`, one-to-one into `[0, T)`."""
    generator = torch.Generator().manual_seed(draft + target)
    ids = torch.randperm(target, generator=generator)[:draft]
    return ids.sort().values if increasing else ids


def random_logits(tokens: int, width: int, dtype: torch.dtype) -> torch.Tensor:
    """Few different values, so that the greatest occurs more than once."""
    generator = torch.Generator().manual_seed(tokens * width)
    return torch.randint(-9, 9, (tokens, width), generator=generator).to(dtype) / 4


def odd_rows(width: int, dtype: torch.dtype) -> torch.Tensor:
    """Rows of `width >= 16` whose greatest logit is hard to tell."""
    infinity, nan = torch.inf, torch.nan
    tiny = torch.finfo(dtype).smallest_normal / 4
    rows = torch.zeros(12, width, dtype=dtype)
    rows[0] = -infinity
    rows[1] = nan
    rows[2] = -infinity
    rows[2, -1] = torch.finfo(dtype).min
    rows[3, 5] = infinity
    rows[3, 9] = nan
    rows[4, 3] = -rows.new_tensor(nan)
    rows[4, 11] = nan
    rows[5] = -0.0
    rows[5, 8] = 0.0
    rows[6, 7] = -0.0
    rows[7] = -1.0
    rows[7, 4] = -tiny
    rows[8, 13] = tiny
    rows[9] = infinity
    rows[10] = torch.linspace(-3, -2, width).to(dtype)
    rows[11, -1] = 1.0
    return rows

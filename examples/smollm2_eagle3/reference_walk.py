# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""Predicts what vLLM counts when it serves a draft at temperature 0, without vLLM.

It walks along an answer that was served. At each step the draft proposes three tokens,
those that the answer confirms are accepted, and one more token comes from the target.

    reading = target.read(request)
    counts = walk(reading, draft.propose(reading))
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from reference import DRAFT_TOKENS, Reading


@dataclass(frozen=True)
class Counts:
    """The counters of speculation, under vLLM's names."""

    num_drafts: int
    num_draft_tokens: int
    num_accepted_tokens: int
    num_accepted_tokens_per_pos: tuple[int, ...]

    @property
    def acceptance_length(self) -> float:
        """Tokens that a step of the target yields on average."""
        return 1 + self.num_accepted_tokens / self.num_drafts


def walk(reading: Reading, proposals: torch.Tensor) -> Counts:
    """Counts the steps of one request.

    Args:
        reading: the target's.
        proposals: `[answer tokens, DRAFT_TOKENS]` int64, the draft's.
    """
    place, drafts = reading.start, 0
    per_position = [0] * DRAFT_TOKENS
    # The first token comes from the prompt. Each step ends with a token of the
    # target's own, and counts as a whole even where the answer ends inside of it.
    while place < reading.end - 1:
        proposed = proposals[place - reading.start]
        right = proposed == reading.tokens[place + 1 : place + 1 + DRAFT_TOKENS]
        accepted = int(right.int().cumprod(0).sum())
        for position in range(accepted):
            per_position[position] += 1
        drafts += 1
        place += accepted + 1
    return Counts(drafts, drafts * DRAFT_TOKENS, sum(per_position), tuple(per_position))


def total(counts: Sequence[Counts]) -> Counts:
    """Adds up counts of several requests."""
    columns = zip(*(each.num_accepted_tokens_per_pos for each in counts), strict=True)
    return Counts(
        sum(each.num_drafts for each in counts),
        sum(each.num_draft_tokens for each in counts),
        sum(each.num_accepted_tokens for each in counts),
        tuple(map(sum, columns)),
    )

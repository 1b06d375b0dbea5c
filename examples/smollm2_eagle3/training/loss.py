# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""How far the draft's guesses are from the target's, over the frequent ids.

The target's head stays as it is: it only turns hidden states into guesses.
"""

from dataclasses import dataclass
from typing import Any

import torch
from batches import Batch
from draft import Draft
from settings import Recipe
from torch import Tensor
from torch.nn import functional

PIECE = 128


@dataclass(frozen=True)
class Head:
    """The target's embeddings, and those rows of them that the loss looks at."""

    embeddings: Tensor
    rows: Tensor
    index: Tensor
    """For each token id its row, or -1, `[vocabulary]`."""

    @classmethod
    def of(cls, embeddings: Tensor, ids: Tensor) -> "Head":
        """Picks the rows of `ids`."""
        index = torch.full((len(embeddings),), -1)
        index[ids] = torch.arange(len(ids))
        return cls(embeddings, embeddings[ids].contiguous(), index)


class _GuessLoss(torch.autograd.Function):
    """Cross entropy of all steps behind a frozen head.

    It goes over the guesses in pieces that stay in the CPU's cache, and works out the
    gradient on the way, since that needs the same numbers.
    """

    @staticmethod
    def forward(
        ctx: Any, states: Tensor, final: Tensor, taken: Tensor, head: Head, hard: float
    ) -> tuple[Tensor, Tensor]:
        """Takes `[steps, guesses, hidden]`; returns loss and hits, `[steps]` both."""
        states = states.to(head.rows.dtype)
        gradients = torch.empty_like(states)
        loss, hits = torch.zeros(len(states)), torch.zeros(len(states))
        for start in range(0, len(taken), PIECE):
            piece = slice(start, start + PIECE)
            row = head.index[taken[piece]]
            goal = goal_of(final[piece], row, head, hard)
            for step, guesses in enumerate(states[:, piece]):
                scores = functional.linear(guesses, head.rows).float()
                scores = scores.log_softmax(dim=-1)
                loss[step] -= torch.dot(scores.flatten(), goal.flatten())
                mine = scores.gather(1, row.clamp(min=0)[:, None]).squeeze(1)
                hits[step] += ((row >= 0) & (mine == scores.amax(dim=-1))).sum()
                gradient = scores.exp_().sub_(goal).to(guesses.dtype)
                torch.mm(gradient, head.rows, out=gradients[step, piece])
        ctx.save_for_backward(gradients)
        ctx.mark_non_differentiable(hits)
        return loss / len(taken), hits / len(taken)

    @staticmethod
    def backward(ctx: Any, *outer: Tensor) -> tuple[Tensor | None, ...]:
        (gradients,) = ctx.saved_tensors
        scale = outer[0] / gradients.shape[1]
        return scale[:, None, None] * gradients.float(), None, None, None, None


def goal_of(final: Tensor, row: Tensor, head: Head, hard: float) -> Tensor:
    """Returns the distributions to learn, float32, `[guesses, rows of the head]`.

    They are the target's own, with the weight `hard` moved to the token that it took.
    """
    goal = functional.linear(final, head.rows).float().softmax(dim=-1)
    known = (row >= 0).float() * hard
    goal *= 1 - known[:, None]
    return goal.scatter_add_(1, row.clamp(min=0)[:, None], known[:, None])


def loss_of(
    draft: Draft, batch: Batch, head: Head, recipe: Recipe
) -> tuple[Tensor, list[float]]:
    """Returns the loss of a batch and, for each step, how often it guesses right."""

    def read(step: int, _: Tensor | None) -> Tensor:
        return batch.tokens.roll(-step - 1, dims=1)

    steps = draft.chains(batch.aux, head.embeddings, read, recipe.draft_steps)
    guesses = torch.stack(
        # The chain that guesses the token behind a column started so far before it.
        [
            states[batch.rows, batch.columns - step - 1]
            for step, states in enumerate(steps)
        ]
    )
    taken = batch.tokens[batch.rows, batch.columns + 1]
    losses, hits = _GuessLoss.apply(
        guesses, batch.final, taken, head, recipe.hard_weight
    )
    return (losses * torch.tensor(recipe.step_weights)).sum(), hits.tolist()

# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""The target continues many token sequences at once, greedily or by sampling."""

from dataclasses import dataclass

import torch
from target import Cache, Target
from torch import Tensor


@dataclass(frozen=True)
class Ending:
    """When a sequence ends: at one of `stop` or after `longest` new tokens."""

    stop: frozenset[int]
    longest: int


@torch.no_grad()
def continue_all(
    target: Target,
    prompts: list[list[int]],
    ending: Ending,
    generator: torch.Generator | None = None,
) -> list[list[int]]:
    """Continues all prompts in one batch.

    Args:
        target: the model.
        prompts: token ids; like lengths waste the least.
        ending: when to stop.
        generator: samples at temperature 1 with it; None takes the likeliest token.

    Returns:
        The new tokens of each prompt. A token of `ending.stop` is included.
    """
    width = max(map(len, prompts))
    padding = torch.tensor([width - len(prompt) for prompt in prompts])
    tokens = torch.tensor([[0] * (width - len(p)) + p for p in prompts])
    cache = Cache(len(prompts), target.shape, target.dtype)
    outputs: list[list[int]] = [[] for _ in prompts]
    owners = torch.arange(len(prompts))
    open_rows = torch.ones(len(prompts), dtype=torch.bool)
    for _ in range(ending.longest):
        states, _ = target.states(tokens, padding, cache)
        chosen = choose(target.logits(states[:, -1]), generator)
        for row in open_rows.nonzero().flatten().tolist():
            token = int(chosen[row])
            outputs[int(owners[row])].append(token)
            open_rows[row] = token not in ending.stop
        if not open_rows.any():
            break
        tokens = chosen[:, None]
        if 2 * int(open_rows.sum()) <= len(open_rows):
            rows = open_rows.nonzero().flatten()
            cache.keep(rows)
            tokens, padding, owners = tokens[rows], padding[rows], owners[rows]
            open_rows = open_rows[rows]
    return outputs


def choose(logits: Tensor, generator: torch.Generator | None) -> Tensor:
    """Returns one token a row: the likeliest, or one drawn at temperature 1."""
    if generator is None:
        return logits.argmax(dim=-1)
    steps = logits.float().softmax(dim=-1).cumsum(dim=-1)
    drawn = torch.rand(len(logits), 1, generator=generator) * steps[:, -1:]
    last = torch.tensor(logits.shape[-1] - 1)
    return torch.searchsorted(steps, drawn).squeeze(1).minimum(last)

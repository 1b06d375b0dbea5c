# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""Which texts train together, and as which tensors."""

import random
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from features import Text
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence


@dataclass(frozen=True)
class Batch:
    """Texts side by side, padded on the right."""

    tokens: Tensor
    """int64, `[texts, positions]`"""
    aux: Tensor
    """`[texts, positions, aux_states * hidden]`"""
    rows: Tensor
    """int64, `[guesses]`: the text of each token that drafts are to guess"""
    columns: Tensor
    """int64, `[guesses]`: the position before that token, where the target's own
    guess comes from"""
    final: Tensor
    """The target's normed state there, `[guesses, hidden]`."""


def group(lengths: Sequence[int], most_tokens: int, seed: int) -> list[list[int]]:
    """Groups texts of like length, so that a padded group has at most `most_tokens`.

    Args:
        lengths: tokens of each text.
        most_tokens: the limit; a longer text makes a group of its own.
        seed: decides who meets whom, and the order of the groups.
    """
    draw = random.Random(seed)
    order = sorted(range(len(lengths)), key=lambda i: lengths[i] + draw.uniform(0, 16))
    groups: list[list[int]] = [[]]
    longest = 0
    for index in order:
        longest = max(longest, lengths[index])
        if groups[-1] and (len(groups[-1]) + 1) * longest > most_tokens:
            groups.append([])
            longest = lengths[index]
        groups[-1].append(index)
    draw.shuffle(groups)
    return groups


def collate(texts: Sequence[Text]) -> Batch:
    """Puts texts into one batch.

    Drafts guess the tokens of the answer behind its first, which the target gives.
    """
    tokens = pad_sequence([text.tokens.long() for text in texts], batch_first=True)
    aux = pad_sequence([text.aux for text in texts], batch_first=True)
    columns = [torch.arange(text.answer, len(text.tokens) - 1) for text in texts]
    rows = [torch.full_like(column, i) for i, column in enumerate(columns)]
    final = [text.final[text.answer : -1] for text in texts]
    return Batch(tokens, aux, torch.cat(rows), torch.cat(columns), torch.cat(final))

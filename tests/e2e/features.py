# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""The vectors that carry the synthetic language through a network.

A hidden state has 128 dimensions, all of them +1 or -1::

    [0, 32)    first   a row of a 32 x 32 Hadamard matrix, one per value
    [32, 64)   second  likewise; its 31 values leave one row unused
    [64, 128)  ones    the same in every state

The rows of a Hadamard matrix are orthogonal: a head row made of the same vectors
scores 32 for each feature that matches and exactly 0 for each that does not. As
every entry is +1 or -1 the root mean square of a state is 1, so RMSNorm with unit
weights returns it as it came, and the constant ones replace every bias.
"""

import torch

from .language import (
    LANGUAGE,
    SECOND_VALUES,
    VOCAB_SIZE,
    DraftVocabulary,
)

HIDDEN_SIZE = 128
FEATURE_SIZE = 32
FIRST = slice(0, FEATURE_SIZE)
SECOND = slice(FEATURE_SIZE, 2 * FEATURE_SIZE)
ONES = slice(2 * FEATURE_SIZE, HIDDEN_SIZE)
NUM_ONES = HIDDEN_SIZE - 2 * FEATURE_SIZE


def hadamard(size: int = FEATURE_SIZE) -> torch.Tensor:
    """Sylvester's matrix: +1 and -1, mutually orthogonal rows, ``[size, size]``."""
    matrix = torch.ones(1, 1)
    while matrix.shape[0] < size:
        matrix = torch.cat(
            [torch.cat([matrix, matrix], 1), torch.cat([matrix, -matrix], 1)]
        )
    return matrix


def states(tokens: list[int]) -> torch.Tensor:
    """The hidden state of each token, ``[tokens, hidden]``."""
    codes = hadamard()
    pairs = torch.tensor([LANGUAGE.features(token) for token in tokens])
    result = torch.ones(len(tokens), HIDDEN_SIZE)
    result[:, FIRST] = codes[pairs[:, 0]]
    result[:, SECOND] = codes[pairs[:, 1]]
    return result


def target_head() -> torch.Tensor:
    """Rows that fit the state of the token before, ``[T, hidden]``."""
    return _rows_after(list(range(VOCAB_SIZE)))


def draft_head(vocabulary: DraftVocabulary) -> torch.Tensor:
    """The same for a draft's rows, plus their preferences, ``[D, hidden]``."""
    rows = _rows_after(list(vocabulary.fits))
    rows[:, ONES] = torch.tensor(vocabulary.preference).unsqueeze(1) / NUM_ONES
    return rows


def _rows_after(tokens: list[int]) -> torch.Tensor:
    before = [LANGUAGE.token_at[LANGUAGE.place_of[token] - 1] for token in tokens]
    rows = states(before)
    rows[:, ONES] = 0.0
    return rows


def advance_second() -> torch.Tensor:
    """Matrix that turns the code of each ``second`` into the next one's, [32, 32].

    The codes are an orthogonal basis, so every permutation of them is linear.
    """
    codes = hadamard()
    moved = codes.clone()
    moved[:SECOND_VALUES] = codes[
        [(value + 1) % SECOND_VALUES for value in range(SECOND_VALUES)]
    ]
    return moved.T @ codes / FEATURE_SIZE


def attention_updates() -> tuple[torch.Tensor, torch.Tensor]:
    """What the draft's attention adds to its residual stream.

    Both are ``[32, 2 * hidden]`` and read ``[embedding, hidden state]``. The first
    replaces the old ``first`` of the residual stream by the newest token's, the
    second advances ``second``. After the sum the residual stream is the newest
    token's state in full: that is what the head reads, and what the next drafting
    step is handed.
    """
    identity = torch.eye(FEATURE_SIZE)
    first = torch.zeros(FEATURE_SIZE, 2 * HIDDEN_SIZE)
    first[:, FIRST] = identity
    first[:, HIDDEN_SIZE:][:, FIRST] = -identity
    second = torch.zeros(FEATURE_SIZE, 2 * HIDDEN_SIZE)
    second[:, HIDDEN_SIZE:][:, SECOND] = advance_second() - identity
    return first, second

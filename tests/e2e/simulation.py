# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""What speculative decoding must do in the synthetic language, step by step.

The rules, as vLLM's scheduler applies them:

* The first generated token comes from the prompt's own forward pass, before
  anything was drafted. The draft then proposes three tokens.
* Each later step verifies those three. The longest prefix that the target agrees
  with is accepted, and the target's own next token is added after it: one step
  yields one to four tokens. Then the draft proposes again.
* A request never asks for fewer than three drafts, not even when a single token is
  missing. What lies beyond ``max_tokens`` is thrown away *after* counting, so the
  last step counts in full: 3 drafted, and all that were accepted.
* The drafts proposed after the last step are never verified, and never counted.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from .language import (
    FIRST_VALUES,
    LANGUAGE,
    NUM_SPECULATIVE_TOKENS,
    SECOND_VALUES,
    DraftVocabulary,
)


@dataclass(frozen=True)
class Request:
    """A prompt, and how many tokens to generate."""

    prompt: tuple[int, ...]
    max_tokens: int

    @property
    def expected_output(self) -> list[int]:
        """What a target that speaks the language answers."""
        return LANGUAGE.continuation(self.prompt[-1], self.max_tokens)


@dataclass(frozen=True)
class Counts:
    """The engine's speculation counters, under its own names."""

    num_drafts: int
    num_draft_tokens: int
    num_accepted_tokens: int
    num_accepted_tokens_per_pos: tuple[int, ...]


def propose(vocabulary: DraftVocabulary, previous: int, newest: int) -> list[int]:
    """The tokens that the draft proposes after ``previous, newest``.

    Args:
        vocabulary: The draft's head.
        previous: Token whose target hidden state the draft is handed.
        newest: Token whose embedding the draft is handed.
    """
    second = LANGUAGE.features(previous)[1]
    proposals: list[int] = []
    for _ in range(NUM_SPECULATIVE_TOKENS):
        first = LANGUAGE.features(newest)[0]
        # The hidden state lags one token, so it is advanced to `newest` here, and
        # handed on like that; the head looks one place further still.
        second = (second + 1) % SECOND_VALUES
        newest = vocabulary.best(
            (first + 1) % FIRST_VALUES, (second + 1) % SECOND_VALUES
        )
        proposals.append(newest)
    return proposals


def accepted_prefix(proposals: Sequence[int], truth: Sequence[int]) -> int:
    """How many proposals match before the first that does not."""
    for position, (proposal, token) in enumerate(zip(proposals, truth, strict=True)):
        if proposal != token:
            return position
    return len(proposals)


def simulate(vocabulary: DraftVocabulary, requests: Sequence[Request]) -> Counts:
    """Counters after all requests; their order and batching make no difference."""
    steps = 0
    per_position = [0] * NUM_SPECULATIVE_TOKENS
    for request in requests:
        previous = request.prompt[-1]
        newest = LANGUAGE.successor(previous)
        generated = 1
        while generated < request.max_tokens:
            truth = LANGUAGE.continuation(newest, NUM_SPECULATIVE_TOKENS + 1)
            proposals = propose(vocabulary, previous, newest)
            accepted = accepted_prefix(proposals, truth[:-1])
            for position in range(accepted):
                per_position[position] += 1
            steps += 1
            generated += accepted + 1
            previous, newest = ([newest] + truth)[accepted : accepted + 2]
    return Counts(
        steps,
        steps * NUM_SPECULATIVE_TOKENS,
        sum(per_position),
        tuple(per_position),
    )

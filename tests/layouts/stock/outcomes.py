# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""What can become of a checkpoint, and how that is found out."""

import contextlib
import enum
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn

from tests.layouts.checkpoint import Checkpoint
from tests.layouts.running import TOKENS, attend_without_cache, share_head
from vllm_eagle3.check.dry_run import sentence

_IDS = "eagle_aux_hidden_state_layer_ids"
# Of a load that ought to be refused, which takes less than one. Stock builds as many
# layers as a config claims.
_MOST_SECONDS = 5
# Where an exception does not count, as in a finalizer.
_AGAIN = 0.5


class Outcome(enum.StrEnum):
    """From a start to the first step of a draft."""

    RIGHT = "right"  # what the paper says of this checkpoint
    WRONG = "wrong numbers"  # without a word
    DIES = "dies at the first step"  # of a server that took the checkpoint
    REFUSED = "refused"  # by a ValueError at load
    FAILED = "fails to load"  # by any other error


@dataclass(frozen=True)
class Case:
    """One checkpoint in one vLLM.

    Attributes:
        test: name of the test that it belongs to, or of the public draft.
        parameters: of the test.
        is_sound: whether it ought to be served.
        detail: the error, or the first difference.
    """

    test: str
    parameters: str
    is_sound: bool
    outcome: Outcome
    detail: str

    @property
    def is_as_it_should_be(self) -> bool:
        wanted = Outcome.RIGHT if self.is_sound else Outcome.REFUSED
        return self.outcome is wanted


def of_sound(checkpoint: Checkpoint, folder: Path) -> tuple[Outcome, str, Any]:
    """What becomes of a checkpoint that ought to be served, and the model if it is."""
    from tests.layouts.running import check_against_reference
    from tests.layouts.small import load

    try:
        model = load(checkpoint, folder)
    except Exception as error:
        return *_of_load(error), None
    try:
        check_against_reference(model, checkpoint)
    except AssertionError as error:
        return Outcome.WRONG, str(error), None
    except Exception as error:
        return Outcome.DIES, _named(error), None
    return Outcome.RIGHT, "", model


def of_faulty(checkpoint: Checkpoint, folder: Path) -> tuple[Outcome, str]:
    """What becomes of a checkpoint that ought to be refused.

    No number that it gives can be right, for it contradicts itself or lacks a part.
    """
    from tests.layouts.small import load

    try:
        with _limited():
            model = load(checkpoint, folder)
    except Exception as error:
        return _of_load(error)
    try:
        _step(model, checkpoint)
    except Exception as error:
        return Outcome.DIES, _named(error)
    return Outcome.WRONG, "starts all the same"


def _width(checkpoint: Checkpoint) -> int:
    """Of the hidden states that vLLM hands over: three layers' if none are named."""
    nested = checkpoint.config.get("eagle_config") or {}
    layers = checkpoint.config.get(_IDS, nested.get(_IDS))
    states = 3 if layers is None else len(layers)
    if nested.get("use_aux_hidden_state") is False:
        states = 1
    return states * checkpoint.target["hidden_size"]


@contextlib.contextmanager
def _limited() -> Iterator[None]:
    """Within, processor time is limited."""

    def stop(*_: object) -> None:
        raise TimeoutError(f"not done after {_MOST_SECONDS} seconds of computing")

    before = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, _MOST_SECONDS, _AGAIN)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def _of_load(error: Exception) -> tuple[Outcome, str]:
    if isinstance(error, ValueError):
        return Outcome.REFUSED, sentence(error)
    return Outcome.FAILED, _named(error)


@torch.inference_mode()
def _step(model: nn.Module, checkpoint: Checkpoint) -> None:
    """Draft one token at each of some positions, as vLLM's V1 proposer does."""
    attend_without_cache(model)
    generator = torch.Generator().manual_seed(7)
    hidden, target = model.model.norm.weight.shape[0], checkpoint.target["vocab_size"]
    if not model.has_own_lm_head:
        share_head(model, torch.randn(target, hidden, generator=generator))
    states = model.combine_hidden_states(
        torch.randn(TOKENS, _width(checkpoint), generator=generator)
    )
    embeds = torch.randn(TOKENS, hidden, generator=generator)
    ids, positions = torch.zeros(TOKENS, dtype=torch.int64), torch.arange(TOKENS)
    last, _ = model(ids, positions, states, embeds)
    model.compute_logits(last).argmax(-1)


def _named(error: Exception) -> str:
    return f"{type(error).__name__}: {error}".removesuffix(": ")

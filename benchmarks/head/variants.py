# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""The ways from draft logits to a draft token, or to logits over the target's ids.

Stock's are the installed functions of vLLM, the fork's those of its models, called on
stand-ins that have the attributes which they read: whole draft models would add their
layers to what is measured, and nothing else.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any
from unittest import mock

import torch

from .cases import Case

STOCK, FLAG = "stock", "stock, flag"
PYTORCH, NATIVE = "ours, PyTorch", "ours, native"

Head = Callable[[torch.Tensor], torch.Tensor]
# Takes what the head takes: hidden states `[B, H]`, or logits `[B, D]` without one.
Way = Callable[[torch.Tensor], Any]


@dataclass(frozen=True)
class Step:
    """Something to time.

    Attributes:
        run: All of it.
        in_pytorch: With the fork's native operators switched off.
    """

    run: Callable[[], Any]
    in_pytorch: bool = False

    def operators(self) -> AbstractContextManager[Any]:
        """Chooses the operators; entered before the clock starts."""
        if not self.in_pytorch:
            return nullcontext()
        from vllm.model_executor.models import draft_vocabulary_ops

        return mock.patch.object(draft_vocabulary_ops, "_is_native", _never)


def _never(name: str, logits: torch.Tensor) -> bool:
    return False


class Ways:
    """All ways for one case.

    Args:
        head: from what a step takes to `[B, D]` logits; the identity for the tail.
    """

    def __init__(self, case: Case, head: Head, device: str) -> None:
        from vllm_eagle3 import native

        self._native = device in native.load().devices
        ids = _increasing_ids(case, device)
        self._stock, self._ours = _Stock(case, head, ids), _Ours(case, head, ids)

    def greedy(self, given: torch.Tensor) -> dict[str, Step]:
        """To `[B]` draft tokens."""
        stock, ours = self._stock, self._ours
        steps = {
            STOCK: Step(lambda: stock.wide(given).argmax(-1)),
            FLAG: Step(lambda: stock.top(given)),
        }
        return steps | self._of_fork(ours.top, given)

    def wide(self, given: torch.Tensor) -> dict[str, Step]:
        """To `[B, T]` logits."""
        steps = {STOCK: Step(lambda: self._stock.wide(given))}
        return steps | self._of_fork(self._ours.wide, given)

    def _of_fork(self, way: Way, given: torch.Tensor) -> dict[str, Step]:
        steps = {PYTORCH: Step(lambda: way(given), in_pytorch=True)}
        if self._native:
            steps[NATIVE] = Step(lambda: way(given))
        return steps


def _increasing_ids(case: Case, device: str) -> torch.Tensor | None:
    """A map as exporters write it, or `None` in full vocabulary."""
    if not case.sizes.reduced:
        return None
    generator = torch.Generator().manual_seed(0)
    ids = torch.randperm(case.sizes.target, generator=generator)[: case.sizes.draft]
    return ids.sort().values.to(device)


def _offsets(ids: torch.Tensor) -> torch.Tensor:
    return ids - torch.arange(len(ids), device=ids.device)


class _Stock:
    """vLLM's Llama draft as installed, down to its logits processor."""

    def __init__(self, case: Case, head: Head, ids: torch.Tensor | None) -> None:
        from vllm.model_executor.layers.logits_processor import LogitsProcessor
        from vllm.model_executor.models.interfaces import LocalArgmaxMixin

        from tests.support.stock import stock_class

        draft: Any = stock_class("llama")
        shard = SimpleNamespace(num_org_vocab_padding=0, org_vocab_start_index=0)
        processor: Any = SimpleNamespace(
            scale=1.0, soft_cap=None, _apply_head=lambda _, states, __: head(states)
        )
        sizes = case.sizes
        # The least that stock's methods ask of a model, so of no class of vLLM's.
        model = dict(
            lm_head=SimpleNamespace(tp_size=1, shard_indices=shard),
            draft_id_to_target_id=None if ids is None else _offsets(ids),
            config=SimpleNamespace(
                vocab_size=sizes.target, draft_vocab_size=sizes.draft
            ),
        )
        whole: Any = SimpleNamespace(
            **model, logits_processor=lambda _, states: head(states)
        )
        reduction = SimpleNamespace(
            get_top_tokens=lambda lm_head, states: LogitsProcessor.get_top_tokens(
                processor, lm_head, states
            )
        )
        top: Any = SimpleNamespace(**model, logits_processor=reduction)
        self.wide: Way = lambda states: draft.compute_logits(whole, states)
        self.top: Way = lambda states: LocalArgmaxMixin.get_top_tokens(top, states)


class _Ours:
    """The fork's draft, which is one for all families from its head on."""

    def __init__(self, case: Case, head: Head, ids: torch.Tensor | None) -> None:
        from vllm.model_executor.models.draft_vocabulary import (
            VocabularySizes,
            absolute_ids,
            inverse_ids,
        )
        from vllm.model_executor.models.eagle3_head import Eagle3ForCausalLM
        from vllm.model_executor.models.eagle3_vocabulary import DraftVocabularyMap

        sizes = VocabularySizes.resolve(
            target=case.sizes.target,
            embedded=case.sizes.target,
            draft_vocab_size=case.sizes.draft,
        )
        vocabulary = DraftVocabularyMap(sizes)
        if ids is not None:
            vocabulary.target_ids = absolute_ids(_offsets(ids))
            vocabulary.draft_ids = inverse_ids(ids, case.sizes.target)
        model: Any = SimpleNamespace(
            lm_head=SimpleNamespace(tp_size=1),
            logits_processor=lambda _, states: head(states),
            widen=vocabulary.widen,
            top_ids=vocabulary.top_ids,
        )
        draft = Eagle3ForCausalLM
        self.wide: Way = lambda states: draft.compute_logits(model, states)
        self.top: Way = lambda states: draft.get_top_tokens(model, states)

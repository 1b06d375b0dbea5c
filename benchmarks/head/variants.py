# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""The ways from hidden states to a draft token, or to logits over the target's ids.

Stock's are the installed functions of vLLM, called on a stand-in that has the
attributes which they read: a whole draft model would add its layers to what is
measured, and nothing else.
"""

from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any
from unittest import mock

import torch
import torch.nn.functional as F

from .cases import Case

# Takes hidden states `[B, H]`, or logits `[B, D]` where only the tail is measured.
Step = Callable[[torch.Tensor], Any]


@dataclass(frozen=True)
class Variants:
    """What to measure for one case; the first of each is what others are held against.

    Attributes:
        greedy: to `[B]` draft tokens.
        wide: to `[B, T]` logits.
    """

    greedy: dict[str, Step]
    wide: dict[str, Step]


def variants(
    case: Case, head: Callable[[torch.Tensor], torch.Tensor], device: str
) -> Variants:
    """All ways for `case`.

    Args:
        head: from what a step takes to `[B, D]` logits; the identity for the tail.
    """
    ids = _increasing_ids(case, device)
    stock, ours = _Stock(case, head, ids), _Ours(case, head, ids)
    greedy: dict[str, Step] = {
        "stock": lambda states: stock.wide(states).argmax(-1),
        "stock, flag": stock.top,
        "ours, PyTorch": in_pytorch(ours.top),
    }
    wide: dict[str, Step] = {
        "stock": stock.wide,
        "ours, PyTorch": in_pytorch(ours.wide),
    }
    if is_native(device):
        greedy["ours, native"] = ours.top
        wide["ours, native"] = ours.wide
    return Variants(greedy, wide)


def is_native(device: str) -> bool:
    from vllm_eagle3 import native

    return device in native.load().devices


def in_pytorch(step: Step) -> Step:
    from vllm.model_executor.models import draft_vocabulary_ops

    def without_operators(states: torch.Tensor) -> Any:
        with mock.patch.object(draft_vocabulary_ops, "_is_native", _never):
            return step(states)

    return without_operators


def _never(name: str, logits: torch.Tensor) -> bool:
    return False


def _increasing_ids(case: Case, device: str) -> torch.Tensor | None:
    """A map as exporters write it, or `None` in full vocabulary."""
    if not case.sizes.reduced:
        return None
    generator = torch.Generator().manual_seed(0)
    ids = torch.randperm(case.sizes.target, generator=generator)[: case.sizes.draft]
    return ids.sort().values.to(device)


class _Stock:
    """vLLM's Llama draft as installed, down to its logits processor."""

    def __init__(
        self,
        case: Case,
        head: Callable[[torch.Tensor], torch.Tensor],
        ids: torch.Tensor | None,
    ) -> None:
        from vllm.model_executor.layers.logits_processor import LogitsProcessor
        from vllm.model_executor.models.interfaces import LocalArgmaxMixin

        from tests.support.stock import stock_class

        draft: Any = stock_class("llama")
        shard = SimpleNamespace(num_org_vocab_padding=0, org_vocab_start_index=0)
        processor: Any = SimpleNamespace(
            scale=1.0, soft_cap=None, _apply_head=lambda _, states, __: head(states)
        )
        offsets = None
        if ids is not None:
            offsets = ids - torch.arange(len(ids), device=ids.device)
        sizes = case.sizes
        # The least that stock's methods ask of a model, so of no class of vLLM's.
        model: Any = SimpleNamespace(
            lm_head=SimpleNamespace(tp_size=1, shard_indices=shard),
            draft_id_to_target_id=offsets,
            config=SimpleNamespace(
                vocab_size=sizes.target, draft_vocab_size=sizes.draft
            ),
        )
        whole: Any = SimpleNamespace(**vars(model))
        whole.logits_processor = lambda _, states: head(states)
        top: Any = SimpleNamespace(**vars(model))
        top.logits_processor = SimpleNamespace(
            get_top_tokens=lambda lm_head, states: LogitsProcessor.get_top_tokens(
                processor, lm_head, states
            )
        )
        self.wide: Step = lambda states: draft.compute_logits(whole, states)
        self.top: Step = lambda states: LocalArgmaxMixin.get_top_tokens(top, states)


class _Ours:
    """The fork's vocabulary map, as its draft models use it."""

    def __init__(
        self,
        case: Case,
        head: Callable[[torch.Tensor], torch.Tensor],
        ids: torch.Tensor | None,
    ) -> None:
        from vllm.model_executor.models.draft_vocabulary import (
            VocabularySizes,
            absolute_ids,
            inverse_ids,
        )
        from vllm.model_executor.models.eagle3_vocabulary import DraftVocabularyMap

        sizes = VocabularySizes.resolve(
            target=case.sizes.target,
            embedded=case.sizes.target,
            draft_vocab_size=case.sizes.draft,
        )
        vocabulary = DraftVocabularyMap(sizes)
        if ids is not None:
            offsets = ids - torch.arange(len(ids), device=ids.device)
            vocabulary.target_ids = absolute_ids(offsets)
            vocabulary.draft_ids = inverse_ids(ids, case.sizes.target)
        self.wide: Step = lambda states: vocabulary.widen(head(states))
        self.top: Step = lambda states: vocabulary.top_ids(head(states))


def matmul_with(weight: torch.Tensor) -> Callable[[torch.Tensor], torch.Tensor]:
    """A head of weights `[D, H]`."""
    return lambda states: F.linear(states, weight)

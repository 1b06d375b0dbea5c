# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""The draft-vocabulary contract: which target id does a draft id stand for?

A draft proposes ids of its own vocabulary of `D` ids; the target verifies ids of
its vocabulary of `T` ids. A checkpoint relates the two by `d2t`, offsets such that
draft id `k` stands for target id `k + d2t[k]`, or by `t2d`, a mask over the target
ids that the draft can propose. `None` in place of offsets says that every draft id
*is* the target id (vLLM PR #53458).

This module and the three it imports own the sizes, both tensors, their checks and what
is done to logits. They know torch and nothing of vLLM. An offset is
`target id - draft id`; an id is an id: no name here holds one for the other.
"""

import enum
from dataclasses import dataclass

import torch
import torch.nn.functional as F

from .draft_vocabulary_ops import (
    draft_argmax_to_target,
    inverse_ids,
    widen_draft_logits,
)
from .draft_vocabulary_sizes import (
    CheckpointTensor,
    VocabularySizes,
    check_head_rows,
    check_sharing,
)
from .draft_vocabulary_tensors import (
    absolute_ids,
    check_mask,
    check_mask_shape,
    check_offsets,
    offsets_from_mask,
)

__all__ = [
    "CheckpointTensor",
    "DraftVocabulary",
    "VocabularyCase",
    "VocabularySizes",
    "absolute_ids",
    "check_head_rows",
    "check_mask",
    "check_mask_shape",
    "check_sharing",
    "draft_argmax_to_target",
    "inverse_ids",
    "pad_logits",
    "read_vocabulary",
    "widen_draft_logits",
]


class VocabularyCase(enum.Enum):
    FULL = "full vocabulary ({target}), no remap"
    PERMUTED = "full vocabulary ({target}), remapped by a permutation"
    REDUCED = "reduced vocabulary, {draft} of {target}, remapped"
    UNPADDED = "unpadded vocabulary, the first {draft} of {target}, no remap"
    PADDED = "padded vocabulary, the first {target} of {draft} head rows, no remap"


@dataclass(frozen=True)
class DraftVocabulary:
    """What a checkpoint says about its ids, checked.

    Attributes:
        case: the row of the contract that applies.
        offsets: int64 `[D]`, or `None` where a draft id is the target id.
    """

    sizes: VocabularySizes
    case: VocabularyCase
    offsets: torch.Tensor | None = None

    def __str__(self) -> str:
        return self.case.value.format(draft=self.sizes.draft, target=self.sizes.target)


def read_vocabulary(
    sizes: VocabularySizes,
    d2t: CheckpointTensor | None = None,
    t2d: CheckpointTensor | None = None,
) -> DraftVocabulary:
    """Decide how draft ids map, from what the checkpoint carries.

    Args:
        d2t: offsets `[D]`, where present.
        t2d: mask over target ids, where present.

    Raises:
        ValueError: the tensors contradict the sizes, themselves or each other.
    """
    if t2d is not None:
        check_mask_shape(sizes, t2d)  # also where its values do not count
    if d2t is None:
        return _without_offsets(sizes, t2d)
    offsets = check_offsets(sizes, d2t)
    if offsets.any():
        case = VocabularyCase.REDUCED if sizes.is_reduced else VocabularyCase.PERMUTED
    elif sizes.is_reduced:
        case = VocabularyCase.REDUCED
    else:
        # Exporters of full-vocabulary drafts write zeros, and masks of any content.
        return _identity(sizes)
    # An exporter that never built a map leaves zeros, and in the mask anything; that is
    # right where the draft's whole vocabulary is the first target ids.
    never_built = not offsets.any() and sizes.embedded == sizes.draft
    if t2d is not None and not never_built:
        check_mask(sizes, t2d, d2t.name, absolute_ids(offsets))
    return DraftVocabulary(sizes, case, offsets)


def _identity(sizes: VocabularySizes) -> DraftVocabulary:
    if sizes.draft == sizes.target:
        return DraftVocabulary(sizes, VocabularyCase.FULL)
    return DraftVocabulary(sizes, VocabularyCase.PADDED)


def _without_offsets(
    sizes: VocabularySizes, t2d: CheckpointTensor | None
) -> DraftVocabulary:
    if not sizes.is_reduced:
        return _identity(sizes)
    if t2d is not None:
        offsets = offsets_from_mask(sizes, t2d)
        return DraftVocabulary(sizes, VocabularyCase.REDUCED, offsets)
    if sizes.embedded == sizes.draft:
        return DraftVocabulary(sizes, VocabularyCase.UNPADDED)
    raise ValueError(
        f"d2t is missing: {sizes.size_source()}, less than the target's vocabulary "
        f"{sizes.target}, so the checkpoint must say which target ids it proposes. "
        "Re-export the draft with d2t (offsets) or t2d (mask)."
    )


def pad_logits(logits: torch.Tensor, target_vocab_size: int) -> torch.Tensor:
    """Draft logits over the target's ids, where a draft id is the target id.

    Args:
        logits: `[tokens, D]` with `D <= T`.

    Returns:
        `[tokens, T]`, `-inf` behind the draft's ids; `logits` itself where it has that
        width.
    """
    absent = target_vocab_size - logits.shape[-1]
    return F.pad(logits, (0, absent), value=-torch.inf) if absent else logits

# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""The vocabulary map as state of a draft model: a parameter, and what derives from it.

`draft_vocabulary.py` decides what a map is; this keeps one, applies it, and lets later
loads replace it.
"""

import torch
from torch import nn
from vllm.logger import init_logger
from vllm.model_executor.model_loader.reload.layerwise import get_layerwise_info
from vllm.model_executor.model_loader.reload.meta import capture_layer_to_meta

from .draft_vocabulary import (
    CheckpointTensor,
    DraftVocabulary,
    VocabularyCase,
    VocabularySizes,
    absolute_ids,
    check_mask,
    check_mask_shape,
    draft_argmax_to_target,
    inverse_ids,
    pad_logits,
    read_vocabulary,
    widen_draft_logits,
)
from .eagle3_slots import deliver

logger = init_logger(__name__)


class DraftVocabularyMap(nn.Module):
    """Base of a draft model that proposes ids of its own vocabulary.

    Sizes alone decide at first (vLLM PR #53458): equal or padded vocabularies have no
    map, a reduced one has zero offsets. Loading corrects that by what the checkpoint
    holds.

    Attributes:
        draft_id_to_target_id: int64 offsets `[D]` from draft ids to target ids, or
            `None` where a draft id is the target id.
        target_ids: int64 `[D]`, the target id of each draft id, or `None`.
        draft_ids: int32 `[T]`, the inverse of `target_ids`, or `None`.

    The last two are derived, so not part of the model's state.
    """

    target_ids: torch.Tensor | None
    draft_ids: torch.Tensor | None

    def __init__(self, sizes: VocabularySizes) -> None:
        super().__init__()
        self._sizes = sizes
        self.register_parameter("draft_id_to_target_id", None)
        self.register_buffer("target_ids", None, persistent=False)
        self.register_buffer("draft_ids", None, persistent=False)
        if sizes.is_reduced:
            self._set_offsets(torch.zeros(sizes.draft, dtype=torch.int64))

    def widen(self, logits: torch.Tensor) -> torch.Tensor:
        """`[tokens, D]` to `[tokens, T]`, `-inf` where no draft id maps."""
        if self.target_ids is None:
            return pad_logits(logits, self._sizes.target)
        assert self.draft_ids is not None
        return widen_draft_logits(logits, self.target_ids, self.draft_ids)

    def top_ids(self, logits: torch.Tensor) -> torch.Tensor:
        """The best target id of each token; of equal logits, the lowest draft id's.

        Args:
            logits: `[tokens, D]`.

        Returns:
            `[tokens]` int64. Nothing wider is built.
        """
        return draft_argmax_to_target(logits, self.target_ids)

    def to_target(self, draft_ids: torch.Tensor) -> torch.Tensor:
        """Draft ids of any shape to target ids."""
        if self.target_ids is None:
            return draft_ids
        return self.target_ids[draft_ids]

    def read_map(
        self,
        d2t: CheckpointTensor | None,
        t2d: CheckpointTensor | None,
        *,
        keep: bool,
    ) -> DraftVocabulary | None:
        """The map that a load brings, or `None` where the present one stays.

        Args:
            keep: whether a load without `d2t` leaves the map as it is.

        Raises:
            ValueError: see `read_vocabulary`; also a mask against the map that stays,
                and a map that comes or goes while vLLM reloads the model.
        """
        if d2t is not None or not keep:
            vocabulary = read_vocabulary(self._sizes, d2t, t2d)
            if keep:
                # A first load may find weights on the meta device and is no reload.
                self._check_change(vocabulary)
            return vocabulary
        if t2d is not None:
            check_mask_shape(self._sizes, t2d)
            if self.target_ids is not None:
                check_mask(self._sizes, t2d, "the map in use", self.target_ids)
        return None

    def install_map(self, vocabulary: DraftVocabulary, *, update: bool) -> None:
        """Use `vocabulary` from now on, and say so in one line.

        Args:
            update: whether the model may have been running already.
        """
        if update and self._comes_or_goes(vocabulary):
            logger.warning(
                "This update changes whether draft ids are mapped. CUDA graphs that "
                "were captured before do not follow; restart the engine for these."
            )
        self._set_offsets(vocabulary.offsets)
        logger.info("EAGLE-3 draft %s: %s", type(self).__name__, vocabulary)
        if vocabulary.case is VocabularyCase.UNPADDED:
            sizes = vocabulary.sizes
            logger.warning(
                "The draft scores %d ids and the target has %d, and the checkpoint "
                "carries no d2t: draft ids are taken as the first %d target ids.",
                sizes.draft,
                sizes.target,
                sizes.draft,
            )

    def process_weights_after_loading(self) -> None:
        """vLLM's hook after every kind of load, also those that set parameters only.

        Raises:
            ValueError: the parameter holds no valid map, as after a loader that never
                filled it.
        """
        if self.draft_id_to_target_id is not None:
            offsets = self.draft_id_to_target_id.data
            found = CheckpointTensor("draft_id_to_target_id", offsets)
            read_vocabulary(self._sizes, found)
            self._set_offsets(offsets)

    def _comes_or_goes(self, vocabulary: DraftVocabulary) -> bool:
        return (vocabulary.offsets is None) != (self.draft_id_to_target_id is None)

    def _check_change(self, vocabulary: DraftVocabulary) -> None:
        reloading = any(weight.is_meta for weight in self.parameters())
        if reloading and self._comes_or_goes(vocabulary):
            raise ValueError(
                "This update changes whether draft ids are mapped, which vLLM's reload "
                "cannot. Restart the engine with the new draft checkpoint."
            )

    def _set_offsets(self, offsets: torch.Tensor | None) -> None:
        parameter = self.draft_id_to_target_id
        if parameter is not None and offsets is not None:
            # In place: captured graphs go on reading these very tensors.
            assert self.target_ids is not None and self.draft_ids is not None
            target_ids = absolute_ids(offsets)
            deliver(parameter, offsets)
            deliver(self.target_ids, target_ids)
            deliver(self.draft_ids, inverse_ids(target_ids, self._sizes.target))
        elif parameter is not None or offsets is not None:
            self._change_whether_ids_are_mapped(offsets)

    def _change_whether_ids_are_mapped(self, offsets: torch.Tensor | None) -> None:
        if offsets is None:
            self.draft_id_to_target_id = None
            self.target_ids = None
            self.draft_ids = None
        else:
            device = next((p.device for p in self.parameters()), offsets.device)
            parameter = nn.Parameter(offsets.to(device), requires_grad=False)
            target_ids = absolute_ids(offsets)
            self.draft_id_to_target_id = parameter
            self.target_ids = target_ids.to(device)
            self.draft_ids = inverse_ids(target_ids, self._sizes.target).to(device)
        # What vLLM restores before it reloads the model layer by layer.
        get_layerwise_info(self).restore_metadata = capture_layer_to_meta(self)

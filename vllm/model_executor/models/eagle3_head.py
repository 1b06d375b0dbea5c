# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""The draft model as vLLM's runners drive it: from token ids to proposed target ids.

`Eagle3ForCausalLM` owns the head and the course of a load; a family subclasses
it with its decoder layer and the modules that vLLM stacks, see `llama_eagle3.py`.
Replaces the three wrapper classes of vLLM's `*_eagle3.py` (PR #53458 and before).
"""

import weakref
from collections.abc import Iterable
from typing import ClassVar

import torch
from torch import nn
from vllm.config import VllmConfig
from vllm.model_executor.layers.logits_processor import LogitsProcessor
from vllm.multimodal.inputs import NestedTensors

from .draft_vocabulary import check_head_rows, check_sharing
from .eagle3 import Eagle3Model
from .eagle3_biases import fit_biases
from .eagle3_checkpoint import Eagle3Checkpoint
from .eagle3_config import Eagle3DraftConfig
from .eagle3_kind import check_kind
from .eagle3_layer import Eagle3DecoderLayer
from .eagle3_loading import Eagle3WeightLoader
from .eagle3_parallel import (
    MaskHidden,
    check_mask_hidden,
    check_mask_token,
    log_unused_mask,
)
from .eagle3_quant_head import HeadBuilder, fitting_head
from .eagle3_quantization import draft_quantization
from .eagle3_slots import StackedModules
from .eagle3_vocabulary import DraftVocabularyMap
from .interfaces import LocalArgmaxMixin, SupportsEagle, SupportsEagle3
from .utils import maybe_prefix


class Eagle3ForCausalLM(
    LocalArgmaxMixin, DraftVocabularyMap, SupportsEagle, SupportsEagle3
):
    """An EAGLE-3 draft of any family; see `DraftVocabularyMap` for its ids."""

    layer_class: ClassVar[type[Eagle3DecoderLayer]]
    # Projections of the family that cannot have a bias, whatever a checkpoint holds.
    without_bias: ClassVar[frozenset[str]] = frozenset()

    @classmethod
    def stacked_modules(cls, draft: Eagle3DraftConfig) -> StackedModules:
        """Stacked module -> checkpoint module -> the shard it fills."""
        return {
            "qkv_proj": {"q_proj": "q", "k_proj": "k", "v_proj": "v"},
            "gate_up_proj": {"gate_proj": 0, "up_proj": 1},
        }

    def __init__(self, *, vllm_config: VllmConfig, prefix: str = "") -> None:
        draft = Eagle3DraftConfig.resolve(vllm_config)
        draft.log_doubts()
        super().__init__(draft.vocabulary)
        self.draft = draft
        self.config = draft.hf_config
        stacked = self.stacked_modules(draft)
        self.quant_config = draft_quantization(vllm_config, draft, stacked)
        self.model = Eagle3Model(
            vllm_config=vllm_config,
            draft=draft,
            layer_class=self.layer_class,
            quant_config=self.quant_config,
            prefix=maybe_prefix(prefix, "model"),
        )
        self._build_head = HeadBuilder(vllm_config, draft, prefix)
        self.lm_head = self._build_head(self.quant_config)
        # Padding past the target's ids is cut off at load, so never scored.
        scored = draft.vocabulary.scored
        self.logits_processor = LogitsProcessor(scored, scale=draft.logit_scale)
        if draft.parallel_drafting:
            self.mask = MaskHidden(draft.fc_input_size)
        # What cannot be the target's is the draft's own, even if no checkpoint is read.
        self.has_own_lm_head = draft.vocabulary.draft != draft.vocabulary.target
        self._stacked = stacked
        self._loaded = False
        # vLLM may put the target's modules in place of these once all is loaded.
        self._built: dict[str, weakref.ref[nn.Module]] = {
            "embed_tokens": weakref.ref(self.model.embed_tokens),
            "lm_head": weakref.ref(self.lm_head),
        }

    @property
    def mask_hidden(self) -> torch.Tensor:
        """`[1, features]`, where vLLM's proposer looks for it."""
        return self.mask.hidden

    def process_weights_after_loading(self) -> None:
        """See `DraftVocabularyMap`; whatever is loaded from here on is an update."""
        super().process_weights_after_loading()
        self._loaded = True

    def embed_input_ids(
        self,
        input_ids: torch.Tensor,
        multimodal_embeddings: NestedTensors | None = None,
        is_multimodal: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """`[tokens]` to `[tokens, hidden]`; a draft sees text only."""
        return self.model.embed_input_ids(input_ids)

    def combine_hidden_states(self, hidden_states: torch.Tensor) -> torch.Tensor:
        """See `Eagle3Model.combine`; also takes one token's states, `[features]`."""
        if hidden_states.ndim == 1:
            return self.model.combine(hidden_states[None])[0]
        return self.model.combine(hidden_states)

    def forward(
        self,
        input_ids: torch.Tensor,
        positions: torch.Tensor,
        hidden_states: torch.Tensor,
        inputs_embeds: torch.Tensor | None = None,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """See `Eagle3Model.forward`."""
        return self.model(input_ids, inputs_embeds, positions, hidden_states)

    def compute_logits(self, hidden_states: torch.Tensor) -> torch.Tensor | None:
        """Logits over the target's ids.

        Args:
            hidden_states: `[tokens, hidden]`.

        Returns:
            `[tokens, T]`, `-inf` where no draft id maps; `None` on ranks that gather no
            logits. The head's own tensor where the vocabularies are equal.
        """
        logits = self.logits_processor(self.lm_head, hidden_states)
        if logits is None:
            return None
        return self.widen(logits)

    def get_top_tokens(self, hidden_states: torch.Tensor) -> torch.Tensor:
        """The best target id of each token, without logits over the target's ids.

        Overrides `LocalArgmaxMixin`, which maps by offsets.

        Args:
            hidden_states: `[tokens, hidden]`.

        Returns:
            `[tokens]` int64: `compute_logits(hidden_states).argmax(-1)`, but that of
            equal logits the lowest draft id wins.
        """
        if self.lm_head.tp_size > 1:
            # Ranks exchange their winners, and no logits.
            winners = self.logits_processor.get_top_tokens(self.lm_head, hidden_states)
            return self.to_target(winners)
        return self.top_ids(self.logits_processor(self.lm_head, hidden_states))

    def load_weights(self, weights: Iterable[tuple[str, torch.Tensor]]) -> set[str]:
        """Load a checkpoint, or later a part of one (a weight update at run time).

        The first call must deliver every parameter, except those of modules that vLLM
        shares with the target. A later call may deliver any subset; without `d2t` the
        vocabulary map stays.

        Returns:
            Names of the parameters that were loaded.

        Raises:
            ValueError: something is missing, unknown, of a wrong shape, or contradicts
                the vocabulary sizes. No parameter has changed then.
        """
        checkpoint = Eagle3Checkpoint.read(weights)
        self._check_kind(checkpoint)
        shared = self._check_shared(checkpoint)
        self._fit_vocabulary(checkpoint)
        vocabulary = self.read_map(checkpoint.d2t, checkpoint.t2d, keep=self._loaded)
        self._check_parallel(checkpoint)
        self._fit_modules(checkpoint)
        loader = Eagle3WeightLoader(self, self.draft, self._stacked, self.quant_config)
        loaded = loader.load(checkpoint, complete=not self._loaded, shared=shared)
        if self.draft.parallel_drafting and checkpoint.mask_hidden is not None:
            self.mask.load(checkpoint.mask_hidden.tensor)
        if vocabulary is not None:
            self.install_map(vocabulary, update=self._loaded)
            if vocabulary.offsets is not None:
                loaded.add("draft_id_to_target_id")
        self._loaded = True
        return loaded

    def _check_shared(self, checkpoint: Eagle3Checkpoint) -> frozenset[str]:
        """Names of the modules that the draft takes from the target.

        Those that vLLM has replaced, and on the first load those that the checkpoint
        lacks. The first load sets the flags by which vLLM's runners decide.
        """
        in_use = {"embed_tokens": self.model.embed_tokens, "lm_head": self.lm_head}
        built = {name: reference() for name, reference in self._built.items()}
        replaced = {name for name in in_use if in_use[name] is not built[name]}
        if self._loaded:
            return frozenset(replaced)
        if self.draft.tie_word_embeddings:
            checkpoint.tie_head(self.draft.vocabulary.draft)
        own = {name for name in in_use if checkpoint.has_module(name)}
        check_sharing(
            self.draft.vocabulary,
            own,
            mapped=checkpoint.d2t is not None or checkpoint.t2d is not None,
            hidden_size=self.draft.hidden_size,
            target_hidden_size=self.draft.target_hidden_size,
        )
        self.has_own_embed_tokens = "embed_tokens" in own
        self.has_own_lm_head = "lm_head" in own
        return frozenset(replaced | (in_use.keys() - own))

    def _fit_vocabulary(self, checkpoint: Eagle3Checkpoint) -> None:
        """Check a head's rows and cut off padding; give short embeddings all rows."""
        sizes = self.draft.vocabulary
        for leaf in ("weight", "weight_packed"):
            if head := checkpoint.weights.get(f"lm_head.{leaf}"):
                check_head_rows(sizes, head)
        checkpoint.keep_head_rows(sizes.draft, sizes.scored)
        checkpoint.fill_embedding_rows(
            sizes.embedded, sizes.embeddable, self.draft.hidden_size
        )

    def _check_kind(self, checkpoint: Eagle3Checkpoint) -> None:
        if not self._loaded:
            check_kind(checkpoint, type(self), self.draft.hidden_size)

    def _check_parallel(self, checkpoint: Eagle3Checkpoint) -> None:
        """Check what parallel drafting needs; a later load may come without it."""
        mask_token_id, found = self.draft.mask_token_id, checkpoint.mask_hidden
        if mask_token_id is None:
            log_unused_mask(found)
            return
        if found is not None or not self._loaded:
            check_mask_hidden(found, self.draft.fc_input_size)
        if not self._loaded:
            own = self.has_own_embed_tokens
            check_mask_token(mask_token_id, self.draft.vocabulary, own_embedding=own)

    def _fit_modules(self, checkpoint: Eagle3Checkpoint) -> None:
        """Give the head and the projections the form that the checkpoint has."""
        if not self._loaded:
            found, config = checkpoint.weights, self.quant_config
            self.lm_head = fitting_head(self.lm_head, found, config, self._build_head)
            self._built["lm_head"] = weakref.ref(self.lm_head)
            fit_biases(self, self.draft, checkpoint, self._stacked, self.without_bias)

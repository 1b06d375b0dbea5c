# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""Every key that an EAGLE-3 draft's config may hold, resolved once.

Exporters spell the same fact in different places (top level, nested in
`eagle_config`, or not at all). `Eagle3DraftConfig.resolve` is the one reader; the
models build from the frozen result and read no config themselves. vLLM's own attention
layers read rope, head size and MLA's ranks from `hf_config`, which they are handed.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

import torch
from vllm.config import VllmConfig

from .draft_vocabulary import VocabularySizes
from .eagle3_aux_states import AuxHiddenStates
from .eagle3_config_keys import ConfigKeys, positive_number
from .eagle3_layer_config import DecoderLayerConfig
from .eagle3_lengths import RequestLengths
from .eagle3_parallel import mask_token_id
from .eagle3_rope import check_rope, check_rope_reaches, settle_rope
from .eagle3_sizes import SIZES, TARGET_VOCABULARY, check_sizes


@dataclass(frozen=True, kw_only=True)
class Eagle3DraftConfig:
    """A draft's configuration beside the target it serves.

    Attributes:
        hf_config: the draft's config as vLLM read it.
        layer: sizes of attention and MLP.
        rope: parameters of rope, those that `hf_config` has too.
        lengths: of the requests that are served, and of those that are drafted for.
        vocabulary: the sizes `T`, `C` and `D`.
        hidden_size: width of the draft's hidden states.
        target_hidden_size: width of one auxiliary hidden state.
        num_layers: decoder layers of the draft.
        first_layer_id: layers of the target, the number of the draft's first layer
            among all attention layers of the engine.
        rms_norm_eps: of all norms of the draft.
        dtype: of the target, in which auxiliary hidden states arrive.
        use_aux_hidden_state: whether `fc` combines auxiliary hidden states; without,
            the target's last hidden states enter as they are.
        aux: which of the target's hidden states `fc` reads.
        norm_before_fc: one norm over the concatenated auxiliary states (`input_norm`).
        fc_norm: a norm of its own for each auxiliary state.
        norm_before_residual: whether the first layer's residual is taken after
            `hidden_norm`.
        norm_output: whether the next draft step reads hidden states after the final
            norm.
        tie_word_embeddings: whether own embeddings are the head of a draft that has
            no `lm_head`.
        logit_scale: factor on the draft's logits.
        mask_token_id: of parallel drafting, see `eagle3_parallel.py`; `None` without.
    """

    hf_config: Any
    layer: DecoderLayerConfig
    rope: Mapping[str, Any]
    lengths: RequestLengths
    vocabulary: VocabularySizes
    hidden_size: int
    target_hidden_size: int
    num_layers: int
    first_layer_id: int
    rms_norm_eps: float
    dtype: torch.dtype
    use_aux_hidden_state: bool
    aux: AuxHiddenStates
    norm_before_fc: bool
    fc_norm: bool
    norm_before_residual: bool
    norm_output: bool
    tie_word_embeddings: bool
    logit_scale: float
    mask_token_id: int | None

    def log_doubts(self) -> None:
        """Warn of what loads well and may still be accepted badly, or not be used."""
        self.aux.log_doubts()
        self.lengths.log_doubts()

    def family_size(self, key: str) -> int:
        """A size that only some families have, and that those need."""
        return ConfigKeys(self.hf_config).required_count(key)

    @property
    def parallel_drafting(self) -> bool:
        """P-EAGLE: all draft tokens from one pass."""
        return self.mask_token_id is not None

    @property
    def num_aux_hidden_states(self) -> int:
        return self.aux.count

    @property
    def fc_input_size(self) -> int:
        """Width of what the target hands over for one token."""
        if not self.use_aux_hidden_state:
            return self.hidden_size
        return self.target_hidden_size * self.num_aux_hidden_states

    @classmethod
    def resolve(cls, vllm_config: VllmConfig) -> "Eagle3DraftConfig":
        """Read the draft's config, each key by its precedence.

        `norm_before_fc` and `use_aux_hidden_state`: `eagle_config`, then (the former
        only, as vLLM's runners do) the top level. `target_hidden_size`: the key, else
        the target's own. Auxiliary hidden states: see `AuxHiddenStates`. A null is an
        absent key.

        Raises:
            ValueError: a key has a value that cannot be served; the message names it.
        """
        speculative = vllm_config.speculative_config
        if speculative is None:
            raise ValueError(
                "An EAGLE-3 draft needs a target: pass it in --speculative-config as "
                "the draft of the model to serve."
            )
        target = vllm_config.model_config
        hf_config = speculative.draft_model_config.hf_config
        keys = ConfigKeys(hf_config)
        _check_stated(keys, target.get_vocab_size())
        lengths = RequestLengths.resolve(vllm_config, speculative)
        rope = settle_rope(hf_config)
        target_layers = target.get_total_num_hidden_layers()
        num_layers = _num_layers(keys, target_layers)
        use_aux = _use_aux_hidden_state(keys, vllm_config)
        layer = DecoderLayerConfig.resolve(
            keys, num_layers=num_layers, served_length=lengths.served
        )
        check_rope_reaches(rope, layer.max_position_embeddings, lengths.drafted)
        return cls(
            hf_config=hf_config,
            layer=layer,
            rope=rope,
            lengths=lengths,
            vocabulary=VocabularySizes.resolve(
                target=target.get_vocab_size(),
                embedded=keys.required_count("vocab_size"),
                draft_vocab_size=keys.top("draft_vocab_size"),
            ),
            hidden_size=keys.required_count("hidden_size"),
            target_hidden_size=_target_hidden_size(
                keys, target.get_hidden_size(), use_aux
            ),
            num_layers=num_layers,
            first_layer_id=target_layers,
            rms_norm_eps=positive_number(
                "rms_norm_eps", keys.top("rms_norm_eps"), 1e-6
            ),
            # vLLM has settled it by now; its annotation still allows "auto".
            dtype=cast(torch.dtype, target.dtype),
            use_aux_hidden_state=use_aux,
            aux=(
                AuxHiddenStates.resolve(keys, target_layers)
                if use_aux
                else AuxHiddenStates.none()
            ),
            norm_before_fc=keys.nested_or_top_flag("norm_before_fc"),
            fc_norm=keys.flag("fc_norm"),
            norm_before_residual=keys.flag("norm_before_residual"),
            norm_output=keys.flag("norm_output"),
            tie_word_embeddings=keys.flag("tie_word_embeddings"),
            logit_scale=keys.number("logit_scale", 1.0),
            mask_token_id=(
                mask_token_id(keys) if speculative.parallel_drafting else None
            ),
        )


def _check_stated(keys: ConfigKeys, target_vocabulary: int) -> None:
    stated = {key: keys.top(key) for key in (*SIZES, "rope_parameters")}
    check_sizes(stated | {TARGET_VOCABULARY: target_vocabulary})
    check_rope(stated)


def _num_layers(keys: ConfigKeys, target_layers: int) -> int:
    """Bounded before layers are built: a slip of a key must not fill the memory."""
    num_layers = keys.required_count("num_hidden_layers")
    if num_layers > target_layers:
        raise ValueError(
            f"num_hidden_layers is {num_layers} in the draft's config, more than the "
            f"{target_layers} layers of the target. Set it to the number of layers "
            "that the draft's checkpoint holds."
        )
    return num_layers


def _use_aux_hidden_state(keys: ConfigKeys, vllm_config: VllmConfig) -> bool:
    """As vLLM's V1 runner reads it: in `eagle_config` alone, true unless it says no."""
    used = keys.nested_or_top_flag("use_aux_hidden_state", True)
    if not used and keys.nested("use_aux_hidden_state") is None:
        raise ValueError(
            "use_aux_hidden_state is false at the top level of the draft's config, "
            "where vLLM's runners do not read it. Move it into eagle_config."
        )
    if not used and vllm_config.use_v2_model_runner:
        raise ValueError(
            "use_aux_hidden_state is false in the draft's config, but Model Runner V2 "
            "hands auxiliary hidden states to every draft. Set "
            "VLLM_USE_V2_MODEL_RUNNER=0 in the environment of the server."
        )
    return used


def _target_hidden_size(keys: ConfigKeys, actual: int, use_aux: bool) -> int:
    own = keys.required_count("hidden_size")
    if not use_aux and own != actual:
        raise ValueError(
            f"hidden_size is {own} in the draft's config and {actual} in the target's, "
            "but use_aux_hidden_state is false, so the draft takes the target's hidden "
            "states as they are. Serve the draft with the target it was trained for."
        )
    declared = keys.count("target_hidden_size", actual)
    if declared != actual:
        raise ValueError(
            f"target_hidden_size is {declared!r} in the draft's config, but the "
            f"target's hidden size is {actual}. Serve the draft with the target that "
            "it was trained for, or correct the key."
        )
    return actual

# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""Every key that an EAGLE-3 draft's config may hold, resolved once.

Exporters spell the same fact in different places (top level, nested in
`eagle_config`, or not at all). `Eagle3DraftConfig.resolve` is the one reader; the
models build from the frozen result and read no config themselves. Rope, head size and
MLA's ranks stay in `hf_config`, which the families hand to vLLM's own attention layers.
"""

from dataclasses import dataclass
from typing import Any, cast

import torch
from vllm.config import VllmConfig

from .draft_vocabulary import VocabularySizes

# What EAGLE-3 exporters mean when they say nothing (arXiv 2503.01840: a low, a middle
# and a high layer of the target).
DEFAULT_AUX_HIDDEN_STATES = 3


@dataclass(frozen=True, kw_only=True)
class DecoderLayerConfig:
    """What attention and MLP are built from.

    Attributes:
        head_dim: of queries, keys and values; `None` means hidden size over heads.
        q_lora_rank: of latent attention; `None` where queries are not compressed.
        layer_types: attention type of each layer, empty where all attend fully.
        sliding_window: tokens that a `sliding_attention` layer sees.
        qkv_bias, o_bias, mlp_bias: whether these projections have biases.
    """

    num_heads: int
    num_kv_heads: int
    head_dim: int | None
    q_lora_rank: int | None
    intermediate_size: int
    hidden_act: str
    max_position_embeddings: int
    layer_types: tuple[str, ...]
    sliding_window: int | None
    qkv_bias: bool
    o_bias: bool
    mlp_bias: bool

    @classmethod
    def resolve(cls, keys: "_ConfigKeys", served_length: int) -> "DecoderLayerConfig":
        """Absent keys mean what transformers' Llama and Qwen3 configs default to.

        `qkv_bias` decides over `attention_bias`, which older configs call `bias`.
        `max_position_embeddings` defaults to what the target serves: vLLM raises a
        smaller value to it, but not an absent one.
        """
        attention_bias = bool(keys.top("attention_bias") or keys.top("bias"))
        num_heads = keys.required("num_attention_heads")
        return cls(
            num_heads=num_heads,
            num_kv_heads=keys.top("num_key_value_heads", num_heads),
            head_dim=keys.top("head_dim"),
            q_lora_rank=keys.top("q_lora_rank"),
            intermediate_size=keys.required("intermediate_size"),
            hidden_act=keys.top("hidden_act", "silu"),
            max_position_embeddings=keys.top("max_position_embeddings", served_length),
            layer_types=tuple(keys.top("layer_types", ())),
            sliding_window=keys.top("sliding_window"),
            qkv_bias=bool(keys.top("qkv_bias", attention_bias)),
            o_bias=attention_bias,
            mlp_bias=bool(keys.top("mlp_bias", False)),
        )

    def window_of(self, index: int) -> int | None:
        """Tokens that layer `index` sees, or `None` for all."""
        if self.layer_types[index : index + 1] == ("sliding_attention",):
            return self.sliding_window
        return None


@dataclass(frozen=True, kw_only=True)
class Eagle3DraftConfig:
    """A draft's configuration beside the target it serves.

    Attributes:
        hf_config: the draft's config as vLLM read it.
        layer: sizes of attention and MLP.
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
        num_aux_hidden_states: how many of them `fc` reads.
        norm_before_fc: one norm over the concatenated auxiliary states (`input_norm`).
        fc_norm: a norm of its own for each auxiliary state.
        norm_before_residual: whether the first layer's residual is taken after
            `hidden_norm`.
        norm_output: whether the next draft step reads hidden states after the final
            norm.
        logit_scale: factor on the draft's logits.
        parallel_drafting: P-EAGLE, all draft tokens from one pass (arXiv 2602.01469).
    """

    hf_config: Any
    layer: DecoderLayerConfig
    vocabulary: VocabularySizes
    hidden_size: int
    target_hidden_size: int
    num_layers: int
    first_layer_id: int
    rms_norm_eps: float
    dtype: torch.dtype
    use_aux_hidden_state: bool
    num_aux_hidden_states: int
    norm_before_fc: bool
    fc_norm: bool
    norm_before_residual: bool
    norm_output: bool
    logit_scale: float
    parallel_drafting: bool

    def family_key(self, key: str) -> Any:
        """A key that only some families have, and that those need."""
        return _ConfigKeys(self.hf_config).required(key)

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
        the target's own. The number of auxiliary hidden states: see
        `_num_aux_hidden_states`. A null is an absent key, but for
        `use_aux_hidden_state`, which vLLM's runners read as false.

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
        keys = _ConfigKeys(hf_config)
        return cls(
            hf_config=hf_config,
            layer=DecoderLayerConfig.resolve(keys, target.max_model_len),
            vocabulary=VocabularySizes.resolve(
                target=target.get_vocab_size(),
                embedded=keys.required("vocab_size"),
                draft_vocab_size=keys.top("draft_vocab_size"),
            ),
            hidden_size=keys.required("hidden_size"),
            target_hidden_size=_target_hidden_size(keys, target.get_hidden_size()),
            num_layers=keys.required("num_hidden_layers"),
            first_layer_id=target.get_total_num_hidden_layers(),
            rms_norm_eps=keys.top("rms_norm_eps", 1e-6),
            # vLLM has settled it by now; its annotation still allows "auto".
            dtype=cast(torch.dtype, target.dtype),
            use_aux_hidden_state=bool(keys.eagle.get("use_aux_hidden_state", True)),
            num_aux_hidden_states=_num_aux_hidden_states(keys),
            norm_before_fc=bool(keys.nested_or_top("norm_before_fc", False)),
            fc_norm=bool(keys.top("fc_norm", False)),
            norm_before_residual=bool(keys.top("norm_before_residual", False)),
            norm_output=bool(keys.top("norm_output", False)),
            logit_scale=keys.top("logit_scale", 1.0),
            parallel_drafting=speculative.parallel_drafting,
        )


class _ConfigKeys:
    """Reads optional keys at the top level and in `eagle_config`; null is absent."""

    def __init__(self, hf_config: Any) -> None:
        self._hf_config = hf_config
        self.eagle: dict[str, Any] = self.top("eagle_config", {})

    def top(self, key: str, default: Any = None) -> Any:
        value = getattr(self._hf_config, key, None)
        return default if value is None else value

    def count(self, key: str) -> int | None:
        """A positive integer, or `None` where the key is absent."""
        value = self.top(key)
        if value is None or (type(value) is int and value > 0):
            return value
        raise ValueError(
            f"{key} is {value!r} in the draft's config. It must be a positive integer."
        )

    def required(self, key: str) -> Any:
        value = self.top(key)
        if value is None:
            raise ValueError(
                f"{key} is not set in the draft's config. An EAGLE-3 draft needs it; "
                "add the value that the draft was trained with."
            )
        return value

    def nested_or_top(self, key: str, default: Any) -> Any:
        value = self.eagle.get(key)
        return self.top(key, default) if value is None else value


def _num_aux_hidden_states(keys: _ConfigKeys) -> int:
    """The count that the keys agree on, or `DEFAULT_AUX_HIDDEN_STATES`.

    Read: `num_aux_hidden_states`, `num_aux_layers`, and the length of
    `eagle_aux_hidden_state_layer_ids` at the top level and in `eagle_config`.
    """
    ids = "eagle_aux_hidden_state_layer_ids"
    found = {
        "num_aux_hidden_states": keys.count("num_aux_hidden_states"),
        "num_aux_layers": keys.count("num_aux_layers"),
        ids: len(keys.top(ids, ())) or None,
        f"eagle_config.{ids}": len(keys.eagle.get(ids) or ()) or None,
    }
    counts = {key: count for key, count in found.items() if count is not None}
    if len(set(counts.values())) > 1:
        listed = ", ".join(f"{key} says {count}" for key, count in counts.items())
        raise ValueError(
            f"The draft's config contradicts itself on the number of auxiliary hidden "
            f"states: {listed}. Keep the one that fc.weight was trained with."
        )
    return next(iter(counts.values()), DEFAULT_AUX_HIDDEN_STATES)


def _target_hidden_size(keys: _ConfigKeys, actual: int) -> int:
    own = keys.required("hidden_size")
    if not keys.eagle.get("use_aux_hidden_state", True) and own != actual:
        raise ValueError(
            f"hidden_size is {own} in the draft's config and {actual} in the target's, "
            "but use_aux_hidden_state is false, so the draft takes the target's hidden "
            "states as they are. Serve the draft with the target it was trained for."
        )
    declared = keys.top("target_hidden_size", actual)
    if declared != actual:
        raise ValueError(
            f"target_hidden_size is {declared!r} in the draft's config, but the "
            f"target's hidden size is {actual}. Serve the draft with the target that "
            "it was trained for, or correct the key."
        )
    return actual

# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""Sizes and options of a draft's decoder layers, from its config."""

from dataclasses import dataclass

from .eagle3_config_keys import ConfigKeys

_SLIDING = "sliding_attention"


@dataclass(frozen=True, kw_only=True)
class DecoderLayerConfig:
    """What attention and MLP are built from.

    Attributes:
        head_dim: of queries, keys and values; `None` means hidden size over heads.
        q_lora_rank: of latent attention; `None` where queries are not compressed.
        layer_types: attention type of each layer, empty where all attend fully.
        sliding_window: tokens that a `sliding_attention` layer sees.
        qkv_bias, o_bias, mlp_bias: whether these projections have biases, as far as
            the config says; a checkpoint may say more, see `eagle3_biases.py`.
        attention_bias_key: where the config says so.
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
    attention_bias_key: str

    @classmethod
    def resolve(
        cls, keys: ConfigKeys, *, num_layers: int, served_length: int
    ) -> "DecoderLayerConfig":
        """Absent keys mean what transformers' Llama and Qwen3 configs default to.

        `qkv_bias` decides over `attention_bias`, which older configs call `bias`.
        `max_position_embeddings` defaults to what the target serves: vLLM raises a
        smaller value to it, but not an absent one.

        Raises:
            ValueError: a value that vLLM's layers cannot be built from.
        """
        attention_bias = keys.flag("attention_bias") or keys.flag("bias")
        bias_keys = ("attention_bias", "bias", "qkv_bias")
        num_heads = keys.required_count("num_attention_heads")
        hidden_act = keys.top("hidden_act", "silu")
        if hidden_act != "silu":
            raise ValueError(
                f"hidden_act is {hidden_act!r} in the draft's config. vLLM's draft "
                "layers know silu only; correct the key if the draft was trained so."
            )
        return cls(
            num_heads=num_heads,
            num_kv_heads=_num_kv_heads(keys, num_heads),
            head_dim=keys.count("head_dim"),
            q_lora_rank=keys.count("q_lora_rank"),
            intermediate_size=keys.required_count("intermediate_size"),
            hidden_act=hidden_act,
            max_position_embeddings=(
                keys.count("max_position_embeddings") or served_length
            ),
            layer_types=_layer_types(keys, num_layers),
            sliding_window=keys.count("sliding_window"),
            qkv_bias=keys.flag("qkv_bias", attention_bias),
            o_bias=attention_bias,
            mlp_bias=keys.flag("mlp_bias"),
            attention_bias_key=next(filter(keys.flag, bias_keys), bias_keys[0]),
        )

    def window_of(self, index: int) -> int | None:
        """Tokens that layer `index` sees, or `None` for all."""
        if self.layer_types[index : index + 1] == (_SLIDING,):
            return self.sliding_window
        return None


def _num_kv_heads(keys: ConfigKeys, num_heads: int) -> int:
    num_kv_heads = keys.count("num_key_value_heads") or num_heads
    if num_heads % num_kv_heads:
        raise ValueError(
            f"num_key_value_heads is {num_kv_heads} in the draft's config, which does "
            f"not divide num_attention_heads {num_heads}. Correct one of them."
        )
    return num_kv_heads


def _layer_types(keys: ConfigKeys, num_layers: int) -> tuple[str, ...]:
    types = tuple(keys.top("layer_types", ()))
    if types and len(types) < num_layers:
        raise ValueError(
            f"layer_types lists {len(types)} layers in the draft's config, but "
            f"num_hidden_layers is {num_layers}. List every layer of the draft."
        )
    if _SLIDING in types[:num_layers] and keys.count("sliding_window") is None:
        raise ValueError(
            f"layer_types says {_SLIDING} in the draft's config, but sliding_window is "
            "not set. Set it to the tokens that such a layer sees."
        )
    return types

# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""EAGLE-3 drafts of the Qwen3 family: Llama's layer with norms on queries and keys."""

from vllm.transformers_utils.config import set_default_rope_theta

from .eagle3_gqa import with_input_size
from .eagle3_head import Eagle3ForCausalLM
from .eagle3_layer import Eagle3DecoderLayer, LayerSite
from .qwen3 import Qwen3Attention, Qwen3MLP

# Of Qwen3's own configs, for drafts that state none.
_ROPE_THETA = 1_000_000


class Qwen3Eagle3DecoderLayer(Eagle3DecoderLayer):
    mlp_class = Qwen3MLP

    def build_attention(self, site: LayerSite) -> Qwen3Attention:
        config, layer = site.draft.hf_config, site.draft.layer
        set_default_rope_theta(config, default_theta=_ROPE_THETA)
        attention = Qwen3Attention(
            num_kv_heads=layer.num_kv_heads,
            head_dim=layer.head_dim,
            max_position=layer.max_position_embeddings,
            rope_parameters=config.rope_parameters,
            rms_norm_eps=site.draft.rms_norm_eps,
            qkv_bias=layer.qkv_bias,
            per_layer_sliding_window=layer.window_of(site.index),
            **site.attention_arguments,
        )
        return with_input_size(attention, site)


class Eagle3Qwen3ForCausalLM(Eagle3ForCausalLM):
    """Serves drafts whose layers have `q_norm` and `k_norm`."""

    layer_class = Qwen3Eagle3DecoderLayer

# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""EAGLE-3 drafts of the Llama family: grouped-query attention and a gated MLP."""

from typing import Any

from .eagle3_gqa import with_input_size
from .eagle3_head import Eagle3ForCausalLM
from .eagle3_layer import Eagle3DecoderLayer, LayerSite
from .llama import LlamaAttention, LlamaMLP


class LlamaEagle3DecoderLayer(Eagle3DecoderLayer):
    mlp_class = LlamaMLP

    def build_attention(self, site: LayerSite) -> LlamaAttention:
        draft, layer = site.draft, site.draft.layer
        # LlamaAttention subtracts this from the layer's number to find its layer type.
        draft.hf_config.target_layer_count = draft.first_layer_id
        attention = LlamaAttention(
            config=draft.hf_config,
            num_kv_heads=layer.num_kv_heads,
            max_position_embeddings=layer.max_position_embeddings,
            bias=layer.qkv_bias,
            bias_o_proj=layer.o_bias,
            **site.attention_arguments,
        )
        return with_input_size(attention, site)

    def mlp_options(self, site: LayerSite) -> dict[str, Any]:
        return {"bias": site.draft.layer.mlp_bias}


class Eagle3LlamaForCausalLM(Eagle3ForCausalLM):
    """Serves every Llama-layout draft, whatever architecture its target has."""

    layer_class = LlamaEagle3DecoderLayer

# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""EAGLE-3 drafts of the Llama family: grouped-query attention and a gated MLP."""

from typing import Any

from vllm.config import VllmConfig
from vllm.model_executor.layers.quantization import QuantizationConfig

from .eagle3 import Eagle3DecoderLayer
from .eagle3_config import Eagle3DraftConfig
from .eagle3_gqa import GQA_STACKED_MODULES, qkv_projection
from .eagle3_head import Eagle3ForCausalLM
from .eagle3_slots import StackedModules
from .llama import LlamaAttention, LlamaMLP


class LlamaEagle3DecoderLayer(Eagle3DecoderLayer):
    def __init__(
        self,
        *,
        vllm_config: VllmConfig,
        draft: Eagle3DraftConfig,
        index: int,
        quant_config: QuantizationConfig | None,
        prefix: str,
    ) -> None:
        layer = draft.layer
        # LlamaAttention subtracts this from the layer's number to find its layer type.
        draft.hf_config.target_layer_count = draft.first_layer_id
        attention = LlamaAttention(
            config=draft.hf_config,
            hidden_size=draft.hidden_size,
            num_heads=layer.num_heads,
            num_kv_heads=layer.num_kv_heads,
            max_position_embeddings=layer.max_position_embeddings,
            quant_config=quant_config,
            bias=layer.qkv_bias,
            bias_o_proj=layer.o_bias,
            cache_config=vllm_config.cache_config,
            prefix=f"{prefix}.self_attn",
        )
        attention.qkv_proj = qkv_projection(
            attention, draft, index, quant_config, f"{prefix}.self_attn.qkv_proj"
        )
        mlp = LlamaMLP(
            hidden_size=draft.hidden_size,
            intermediate_size=layer.intermediate_size,
            hidden_act=layer.hidden_act,
            quant_config=quant_config,
            bias=layer.mlp_bias,
            prefix=f"{prefix}.mlp",
        )
        super().__init__(draft, index, self_attn=attention, mlp=mlp)


class Eagle3LlamaForCausalLM(Eagle3ForCausalLM):
    """Serves every Llama-layout draft, whatever architecture its target has."""

    layer_class = LlamaEagle3DecoderLayer

    @classmethod
    def stacked_modules(cls, hf_config: Any) -> StackedModules:
        return GQA_STACKED_MODULES

# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""EAGLE-3 drafts of the Qwen3 family: Llama's layer with norms on queries and keys."""

from typing import Any

from vllm.config import VllmConfig
from vllm.model_executor.layers.quantization import QuantizationConfig
from vllm.transformers_utils.config import set_default_rope_theta

from .eagle3 import Eagle3DecoderLayer
from .eagle3_config import Eagle3DraftConfig
from .eagle3_gqa import GQA_STACKED_MODULES, qkv_projection
from .eagle3_head import Eagle3ForCausalLM
from .eagle3_slots import StackedModules
from .qwen3 import Qwen3Attention, Qwen3MLP

# Of Qwen3's own configs, for drafts that state none.
_ROPE_THETA = 1_000_000


class Qwen3Eagle3DecoderLayer(Eagle3DecoderLayer):
    def __init__(
        self,
        *,
        vllm_config: VllmConfig,
        draft: Eagle3DraftConfig,
        index: int,
        quant_config: QuantizationConfig | None,
        prefix: str,
    ) -> None:
        config, layer = draft.hf_config, draft.layer
        set_default_rope_theta(config, default_theta=_ROPE_THETA)
        attention = Qwen3Attention(
            hidden_size=draft.hidden_size,
            num_heads=layer.num_heads,
            num_kv_heads=layer.num_kv_heads,
            rope_parameters=config.rope_parameters,
            max_position=layer.max_position_embeddings,
            head_dim=layer.head_dim,
            rms_norm_eps=draft.rms_norm_eps,
            qkv_bias=layer.qkv_bias,
            cache_config=vllm_config.cache_config,
            quant_config=quant_config,
            prefix=f"{prefix}.self_attn",
            per_layer_sliding_window=layer.window_of(index),
        )
        attention.qkv_proj = qkv_projection(
            attention, draft, index, quant_config, f"{prefix}.self_attn.qkv_proj"
        )
        mlp = Qwen3MLP(
            hidden_size=draft.hidden_size,
            intermediate_size=layer.intermediate_size,
            hidden_act=layer.hidden_act,
            quant_config=quant_config,
            prefix=f"{prefix}.mlp",
        )
        super().__init__(draft, index, self_attn=attention, mlp=mlp)


class Eagle3Qwen3ForCausalLM(Eagle3ForCausalLM):
    """Serves drafts whose layer has `q_norm` and `k_norm`."""

    layer_class = Qwen3Eagle3DecoderLayer

    @classmethod
    def stacked_modules(cls, hf_config: Any) -> StackedModules:
        return GQA_STACKED_MODULES

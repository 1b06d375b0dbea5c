# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""EAGLE-3 drafts of the DeepSeek family: multi-head latent attention, a dense MLP."""

from typing import Any

import torch
from vllm.config import VllmConfig
from vllm.model_executor.layers.quantization import QuantizationConfig

from .deepseek_v2 import DeepseekV2MLAAttention, DeepseekV2MLP
from .eagle3 import Eagle3DecoderLayer, attention_input_size
from .eagle3_config import Eagle3DraftConfig
from .eagle3_head import Eagle3ForCausalLM
from .eagle3_slots import StackedModules


class DeepseekEagle3DecoderLayer(Eagle3DecoderLayer):
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
        attention = DeepseekV2MLAAttention(
            vllm_config=vllm_config,
            config=config,
            hidden_size=draft.hidden_size,
            num_heads=layer.num_heads,
            qk_nope_head_dim=config.qk_nope_head_dim,
            qk_rope_head_dim=config.qk_rope_head_dim,
            v_head_dim=config.v_head_dim,
            q_lora_rank=config.q_lora_rank,
            kv_lora_rank=config.kv_lora_rank,
            max_position_embeddings=layer.max_position_embeddings,
            cache_config=vllm_config.cache_config,
            quant_config=quant_config,
            prefix=f"{prefix}.self_attn",
            input_size=attention_input_size(draft, index),
        )
        # A draft is dense whatever its target is.
        mlp = DeepseekV2MLP(
            hidden_size=draft.hidden_size,
            intermediate_size=layer.intermediate_size,
            hidden_act=layer.hidden_act,
            quant_config=quant_config,
            prefix=f"{prefix}.mlp",
        )
        super().__init__(draft, index, self_attn=attention, mlp=mlp)

    def attend(
        self, positions: torch.Tensor, attention_input: torch.Tensor
    ) -> torch.Tensor:
        return self.self_attn(
            positions=positions, hidden_states=attention_input, llama_4_scaling=None
        )


class Eagle3DeepseekV2ForCausalLM(Eagle3ForCausalLM):
    """Serves drafts with latent attention: DeepSeek's, Kimi's."""

    layer_class = DeepseekEagle3DecoderLayer

    @classmethod
    def stacked_modules(cls, hf_config: Any) -> StackedModules:
        gate_up = {"gate_up_proj": {"gate_proj": 0, "up_proj": 1}}
        if hf_config.q_lora_rank is None:
            return gate_up
        return gate_up | {"fused_qkv_a_proj": {"q_a_proj": 0, "kv_a_proj_with_mqa": 1}}


# vLLM's registry knows the class under both generations' names.
Eagle3DeepseekV3ForCausalLM = Eagle3DeepseekV2ForCausalLM

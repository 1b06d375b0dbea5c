# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""EAGLE-3 drafts of the DeepSeek family: multi-head latent attention, a dense MLP."""

import torch

from .deepseek_v2 import DeepseekV2MLAAttention, DeepseekV2MLP
from .eagle3_config import Eagle3DraftConfig
from .eagle3_head import Eagle3ForCausalLM
from .eagle3_layer import Eagle3DecoderLayer, LayerSite
from .eagle3_rope import LATENT_TYPES
from .eagle3_slots import StackedModules


class DeepseekEagle3DecoderLayer(Eagle3DecoderLayer):
    # A draft is dense whatever its target is.
    mlp_class = DeepseekV2MLP
    rope_types = LATENT_TYPES

    @classmethod
    def check_rope(cls, draft: Eagle3DraftConfig) -> None:
        section = draft.rope.get("mrope_section")
        if section is not None:
            raise ValueError(
                f"rope_parameters.mrope_section is {section!r} in the draft's config, "
                "but vLLM's latent attention computes no multimodal rope. Remove the "
                "key if the draft was trained without."
            )
        super().check_rope(draft)

    @classmethod
    def rotary_head_size(cls, draft: Eagle3DraftConfig) -> int:
        return draft.family_size("qk_rope_head_dim")

    def build_attention(self, site: LayerSite) -> DeepseekV2MLAAttention:
        draft = site.draft
        return DeepseekV2MLAAttention(
            vllm_config=site.vllm_config,
            config=draft.hf_config,
            qk_nope_head_dim=draft.family_size("qk_nope_head_dim"),
            qk_rope_head_dim=draft.family_size("qk_rope_head_dim"),
            v_head_dim=draft.family_size("v_head_dim"),
            q_lora_rank=draft.layer.q_lora_rank,
            kv_lora_rank=draft.family_size("kv_lora_rank"),
            max_position_embeddings=draft.layer.max_position_embeddings,
            input_size=site.attention_input_size,
            **site.attention_arguments,
        )

    def attend(
        self, positions: torch.Tensor, attention_input: torch.Tensor
    ) -> torch.Tensor:
        return self.self_attn(
            positions=positions, hidden_states=attention_input, llama_4_scaling=None
        )


class Eagle3DeepseekV2ForCausalLM(Eagle3ForCausalLM):
    """Serves drafts with latent attention: DeepSeek's, Kimi's."""

    layer_class = DeepseekEagle3DecoderLayer
    # vLLM's latent attention fuses or absorbs them.
    without_bias = frozenset(
        {
            "fused_qkv_a_proj",
            "kv_a_proj_with_mqa",
            "q_proj",
            "q_b_proj",
            "kv_b_proj",
        }
    )

    @classmethod
    def stacked_modules(cls, draft: Eagle3DraftConfig) -> StackedModules:
        stacked = {"gate_up_proj": {"gate_proj": 0, "up_proj": 1}}
        if draft.layer.q_lora_rank is not None:
            stacked["fused_qkv_a_proj"] = {"q_a_proj": 0, "kv_a_proj_with_mqa": 1}
        return stacked


# vLLM's registry knows the class under both generations' names.
Eagle3DeepseekV3ForCausalLM = Eagle3DeepseekV2ForCausalLM

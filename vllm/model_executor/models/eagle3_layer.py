# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""The decoder layer of an EAGLE-3 draft, around a family's attention and MLP.

The first layer attends over embeddings and hidden states side by side,
`[tokens, 2 * hidden]`; every later one over `[tokens, hidden]` like a layer of the
target (EAGLE-3, arXiv 2503.01840).
"""

from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import nn
from vllm.config import VllmConfig
from vllm.model_executor.layers.layernorm import RMSNorm
from vllm.model_executor.layers.quantization import QuantizationConfig

from .eagle3_config import Eagle3DraftConfig
from .eagle3_rope import GROUPED_TYPES, check_rope_fits


@dataclass(frozen=True, kw_only=True)
class LayerSite:
    """Where a decoder layer stands, and what its parts are built from.

    Attributes:
        draft: the draft's resolved config.
        index: of the layer within the draft; only layer 0 sees embeddings.
        quant_config: of the draft.
        prefix: of the layer among all modules of the engine.
    """

    vllm_config: VllmConfig
    draft: Eagle3DraftConfig
    index: int
    quant_config: QuantizationConfig | None
    prefix: str

    @property
    def attention_input_size(self) -> int:
        """Features that attention reads for one token."""
        hidden_size = self.draft.hidden_size
        return 2 * hidden_size if self.index == 0 else hidden_size

    @property
    def attention_arguments(self) -> dict[str, Any]:
        """What vLLM's attention layers all take, whatever the family."""
        return {
            "hidden_size": self.draft.hidden_size,
            "num_heads": self.draft.layer.num_heads,
            "cache_config": self.vllm_config.cache_config,
            "quant_config": self.quant_config,
            "prefix": f"{self.prefix}.self_attn",
        }


class Eagle3DecoderLayer(nn.Module):
    """One decoder layer; a family says which attention and which MLP."""

    mlp_class: ClassVar[type[nn.Module]]
    rope_types: ClassVar[frozenset[str]] = GROUPED_TYPES

    def __init__(self, site: LayerSite) -> None:
        super().__init__()
        draft = site.draft
        self.is_first = site.index == 0
        self.norm_before_residual = draft.norm_before_residual
        self.self_attn = self.build_attention(site)
        self.mlp = self.mlp_class(
            hidden_size=draft.hidden_size,
            intermediate_size=draft.layer.intermediate_size,
            hidden_act=draft.layer.hidden_act,
            quant_config=site.quant_config,
            prefix=f"{site.prefix}.mlp",
            **self.mlp_options(site),
        )
        self.input_layernorm = rms_norm(draft)
        self.post_attention_layernorm = rms_norm(draft)
        if self.is_first:
            self.hidden_norm = rms_norm(draft)

    @classmethod
    def check_rope(cls, draft: Eagle3DraftConfig) -> None:
        """Refuse rope that the family's attention cannot compute.

        Raises:
            ValueError: as `check_rope_fits` does.
        """
        check_rope_fits(draft.rope, cls.rope_types, cls.rotary_head_size(draft))

    @classmethod
    def rotary_head_size(cls, draft: Eagle3DraftConfig) -> int:
        """Features of a query head that rope may turn."""
        return draft.layer.head_dim or draft.hidden_size // draft.layer.num_heads

    def build_attention(self, site: LayerSite) -> nn.Module:
        """Attention from `site.attention_input_size` to `hidden` features."""
        raise NotImplementedError

    def mlp_options(self, site: LayerSite) -> dict[str, Any]:
        """Arguments that only this family's MLP takes."""
        return {}

    def forward(
        self,
        positions: torch.Tensor,
        embeds: torch.Tensor,
        hidden_states: torch.Tensor,
        residual: torch.Tensor | None,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """`[tokens, hidden]` each way; returns the MLP's output and the residual."""
        if self.is_first:
            attention_input, residual = self._join(embeds, hidden_states)
        else:
            attention_input, residual = self.input_layernorm(hidden_states, residual)
        attended = self.attend(positions, attention_input)
        mlp_input, residual = self.post_attention_layernorm(attended, residual)
        return self.mlp(mlp_input), residual

    def attend(
        self, positions: torch.Tensor, attention_input: torch.Tensor
    ) -> torch.Tensor:
        """To `[tokens, hidden]`; overridden where attention takes other arguments."""
        return self.self_attn(positions=positions, hidden_states=attention_input)

    def _join(
        self, embeds: torch.Tensor, hidden_states: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        normed = self.hidden_norm(hidden_states)
        residual = normed if self.norm_before_residual else hidden_states
        # [tokens, 2 * hidden]
        return torch.cat((self.input_layernorm(embeds), normed), dim=-1), residual


def rms_norm(draft: Eagle3DraftConfig, size: int | None = None) -> RMSNorm:
    """The draft's norm over `size` features, the hidden size unless given."""
    return RMSNorm(size or draft.hidden_size, eps=draft.rms_norm_eps)

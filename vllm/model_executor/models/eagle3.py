# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""What all EAGLE-3 drafts share: the trunk from token ids to hidden states.

    input_ids ── embed_tokens ── input_layernorm ──┐
                                                   ├─ cat ─ attention ─ mlp ─ norm
    auxiliary states ── fc ── hidden_norm ─────────┘         (first layer)

The first layer attends over `[tokens, 2 * hidden]`, every later one over
`[tokens, hidden]` like a layer of the target (EAGLE-3, arXiv 2503.01840). A family
brings the attention and the MLP; `eagle3_head.py` turns hidden states into ids.
"""

import torch
from torch import nn
from vllm.compilation.decorators import support_torch_compile
from vllm.config import VllmConfig
from vllm.model_executor.layers.layernorm import RMSNorm
from vllm.model_executor.layers.linear import ReplicatedLinear
from vllm.model_executor.layers.quantization import QuantizationConfig
from vllm.model_executor.layers.vocab_parallel_embedding import VocabParallelEmbedding

from .eagle3_config import Eagle3DraftConfig
from .utils import maybe_prefix


class Eagle3DecoderLayer(nn.Module):
    """One decoder layer around a family's attention and MLP.

    Args:
        index: of the layer within the draft; only layer 0 sees embeddings.
        self_attn: attention over `attention_input_size(draft, index)` features.
        mlp: `[tokens, hidden]` to `[tokens, hidden]`.
    """

    def __init__(
        self,
        draft: Eagle3DraftConfig,
        index: int,
        *,
        self_attn: nn.Module,
        mlp: nn.Module,
    ) -> None:
        super().__init__()
        self.is_first = index == 0
        self.norm_before_residual = draft.norm_before_residual
        self.self_attn = self_attn
        self.mlp = mlp
        self.input_layernorm = _norm(draft)
        self.post_attention_layernorm = _norm(draft)
        if self.is_first:
            self.hidden_norm = _norm(draft)

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


def attention_input_size(draft: Eagle3DraftConfig, index: int) -> int:
    """Features that the attention of layer `index` reads for one token."""
    return 2 * draft.hidden_size if index == 0 else draft.hidden_size


@support_torch_compile(
    dynamic_arg_dims={
        "input_ids": 0,
        # [3, tokens] under multimodal rope, else [tokens]
        "positions": -1,
        "hidden_states": 0,
        "input_embeds": 0,
    }
)
class Eagle3Model(nn.Module):
    """Embedding, `fc` with its norms, the decoder layers and the final norm.

    Args:
        layer_class: the family's decoder layer.
        quant_config: of the draft.
    """

    def __init__(
        self,
        *,
        vllm_config: VllmConfig,
        draft: Eagle3DraftConfig,
        layer_class: type[Eagle3DecoderLayer],
        quant_config: QuantizationConfig | None,
        prefix: str = "",
    ) -> None:
        super().__init__()
        self.draft = draft
        self.embed_tokens = VocabParallelEmbedding(
            draft.vocabulary.embedded,
            draft.hidden_size,
            prefix=maybe_prefix(prefix, "embed_tokens"),
        )
        # Attention layers register by prefix for the whole engine, so the draft's
        # layers are counted after the target's.
        self.layers = nn.ModuleList(
            layer_class(
                vllm_config=vllm_config,
                draft=draft,
                index=index,
                quant_config=quant_config,
                prefix=maybe_prefix(prefix, f"layers.{draft.first_layer_id + index}"),
            )
            for index in range(draft.num_layers)
        )
        if draft.use_aux_hidden_state:
            self._build_combiner(quant_config, prefix)
        self.norm = _norm(draft)

    def _build_combiner(
        self, quant_config: QuantizationConfig | None, prefix: str
    ) -> None:
        draft = self.draft
        if draft.norm_before_fc:
            self.input_norm = _norm(draft, draft.fc_input_size)
        if draft.fc_norm:
            self.fc_norm = nn.ModuleList(
                _norm(draft, draft.target_hidden_size)
                for _ in range(draft.num_aux_hidden_states)
            )
        self.fc = ReplicatedLinear(
            draft.fc_input_size,
            draft.hidden_size,
            bias=False,
            params_dtype=draft.dtype,
            quant_config=quant_config,
            prefix=maybe_prefix(prefix, "fc"),
            return_bias=False,
        )

    def combine(self, hidden_states: torch.Tensor) -> torch.Tensor:
        """The target's hidden states, as the draft's first layer takes them.

        Args:
            hidden_states: `[tokens, aux * target_hidden]`, or `[tokens, hidden]` for
                a draft without auxiliary hidden states.

        Returns:
            `[tokens, hidden]`.
        """
        draft = self.draft
        if not draft.use_aux_hidden_state:
            return hidden_states
        if draft.norm_before_fc:
            hidden_states = self.input_norm(hidden_states)
        if draft.fc_norm:
            states = hidden_states.chunk(draft.num_aux_hidden_states, dim=-1)
            normed = [norm(x) for norm, x in zip(self.fc_norm, states, strict=True)]
            hidden_states = torch.cat(normed, dim=-1)
        return self.fc(hidden_states)

    def embed_input_ids(self, input_ids: torch.Tensor) -> torch.Tensor:
        """`[tokens]` to `[tokens, hidden]`."""
        return self.embed_tokens(input_ids)

    def forward(
        self,
        input_ids: torch.Tensor,
        positions: torch.Tensor,
        hidden_states: torch.Tensor,
        input_embeds: torch.Tensor | None = None,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """One draft step.

        Returns:
            Hidden states for the head, and those that the next step starts from,
            `[tokens, hidden]` both.
        """
        embeds = input_embeds
        if embeds is None:
            embeds = self.embed_input_ids(input_ids)
        residual = None
        for layer in self.layers:
            hidden_states, residual = layer(positions, embeds, hidden_states, residual)
        normed, unnormed = self.norm(hidden_states, residual)
        return normed, normed if self.draft.norm_output else unnormed


def _norm(draft: Eagle3DraftConfig, size: int | None = None) -> RMSNorm:
    return RMSNorm(size or draft.hidden_size, eps=draft.rms_norm_eps)

# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""What all EAGLE-3 drafts share: the trunk from token ids to hidden states.

    input_ids ── embed_tokens ── input_layernorm ──┐
                                                   ├─ cat ─ attention ─ mlp ─ norm
    auxiliary states ── fc ── hidden_norm ─────────┘         (first layer)

A family brings the attention and the MLP (`eagle3_layer.py`); `eagle3_head.py` turns
hidden states into ids.
"""

import torch
from torch import nn
from vllm.compilation.decorators import support_torch_compile
from vllm.config import VllmConfig
from vllm.model_executor.layers.linear import ReplicatedLinear
from vllm.model_executor.layers.quantization import QuantizationConfig
from vllm.model_executor.layers.vocab_parallel_embedding import VocabParallelEmbedding

from .eagle3_config import Eagle3DraftConfig
from .eagle3_layer import Eagle3DecoderLayer, LayerSite, rms_norm
from .utils import maybe_prefix


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
        layer_class.check_rope(draft)
        self.draft = draft
        self.embed_tokens = VocabParallelEmbedding(
            draft.vocabulary.embeddable,
            draft.hidden_size,
            prefix=maybe_prefix(prefix, "embed_tokens"),
        )
        # Attention layers register by prefix for the whole engine, so the draft's
        # layers are counted after the target's.
        self.layers = nn.ModuleList(
            layer_class(
                LayerSite(
                    vllm_config=vllm_config,
                    draft=draft,
                    index=index,
                    quant_config=quant_config,
                    prefix=maybe_prefix(
                        prefix, f"layers.{draft.first_layer_id + index}"
                    ),
                )
            )
            for index in range(draft.num_layers)
        )
        if draft.use_aux_hidden_state:
            self._build_combiner(quant_config)
        self.norm = rms_norm(draft)

    def _build_combiner(self, quant_config: QuantizationConfig | None) -> None:
        draft = self.draft
        if draft.norm_before_fc:
            self.input_norm = rms_norm(draft, draft.fc_input_size)
        if draft.fc_norm:
            self.fc_norm = nn.ModuleList(
                rms_norm(draft, draft.target_hidden_size)
                for _ in range(draft.num_aux_hidden_states)
            )
        self.fc = ReplicatedLinear(
            draft.fc_input_size,
            draft.hidden_size,
            bias=False,
            params_dtype=draft.dtype,
            quant_config=quant_config,
            # Quantisation configs say `fc`; formats leave names without a dot as is.
            prefix="fc",
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
        input_embeds: torch.Tensor | None,
        positions: torch.Tensor,
        hidden_states: torch.Tensor,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """One draft step.

        Args:
            input_ids: `[tokens]`, ids of the target's vocabulary.
            input_embeds: `[tokens, hidden]` in place of embedded `input_ids`.
            positions: `[tokens]`, or `[3, tokens]` under multimodal rope.
            hidden_states: `[tokens, hidden]`, as `combine` or the step before made
                them.

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

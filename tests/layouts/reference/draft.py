# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""The EAGLE-3 draft: fuse the target's states, one decoder layer or more, a head."""

from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F

from .attention import grouped_query, latent, linear, rms_norm
from .reading import Tensors, flat_config, group, mapped_ids, split


@dataclass(frozen=True)
class Outputs:
    """Of one draft step.

    Attributes:
        combined: the fused target states, `[tokens, hidden]`.
        hidden: what the head reads, `[tokens, hidden]`.
        following: what the next step starts from, `[tokens, hidden]`.
        logits: over the target's ids, `[tokens, T]`.
    """

    combined: torch.Tensor
    hidden: torch.Tensor
    following: torch.Tensor
    logits: torch.Tensor


class ReferenceDraft:
    """A draft as its checkpoint describes it.

    Args:
        config: the checkpoint's `config.json`.
        tensors: the checkpoint's tensors.
        target_vocab: `T`.
        target_head: `[T, hidden]`, for a draft without a head of its own.
    """

    def __init__(
        self,
        config: dict[str, Any],
        tensors: Tensors,
        target_vocab: int,
        target_head: torch.Tensor | None = None,
    ) -> None:
        self.config = flat_config(config)
        self.weights, apart = split(tensors)
        self.target_vocab = target_vocab
        head = self.weights.get("lm_head.weight")
        if head is None and self.config.get("tie_word_embeddings"):
            head = self.weights.get("embed_tokens.weight")
        head = target_head if head is None else head
        if head is None:
            raise ValueError("neither an own head nor the target's")
        self.head = head
        self.target_ids = mapped_ids(apart, len(self.head))
        self.mask = self.weights.pop("mask_hidden", None)

    def __call__(
        self, embeds: torch.Tensor, states: torch.Tensor, positions: torch.Tensor
    ) -> Outputs:
        """One step.

        Args:
            embeds: of the newest token each, `[tokens, hidden]`.
            states: the target's states side by side, `[tokens, aux * hidden]`.
            positions: `[tokens]`.
        """
        combined = self.combine(states)
        last = self._first_layer(embeds, combined, positions)
        number = 1
        while layer := group(self.weights, f"layers.{number}."):
            normed = rms_norm(last, layer["input_layernorm.weight"])
            last = self._rest_of_layer(layer, normed, last, positions)
            number += 1
        hidden = rms_norm(last, self.weights["norm.weight"])
        return Outputs(
            combined=combined,
            hidden=hidden,
            following=hidden if self.config.get("norm_output") else last,
            logits=self.logits(hidden),
        )

    def combine(self, states: torch.Tensor) -> torch.Tensor:
        """`[tokens, aux * target hidden]` to `[tokens, hidden]`."""
        if "fc.weight" not in self.weights:
            return states
        if "input_norm.weight" in self.weights:
            states = rms_norm(states, self.weights["input_norm.weight"])
        if norms := group(self.weights, "fc_norm."):
            parts = states.chunk(len(norms), -1)
            normed = [rms_norm(p, norms[f"{n}.weight"]) for n, p in enumerate(parts)]
            states = torch.cat(normed, -1)
        return linear(states, self.weights, "fc")

    def logits(self, hidden: torch.Tensor) -> torch.Tensor:
        """Over the target's ids; minus infinity where the draft has no say."""
        scored = F.linear(hidden, self.head) * self.config.get("logit_scale", 1.0)
        result = hidden.new_full((len(hidden), self.target_vocab), -torch.inf)
        known = self.target_ids < self.target_vocab  # the rest is padding
        result[:, self.target_ids[known]] = scored[:, known]
        return result

    def _first_layer(
        self, embeds: torch.Tensor, combined: torch.Tensor, positions: torch.Tensor
    ) -> torch.Tensor:
        layer = group(self.weights, "layers.0.")
        normed = rms_norm(combined, layer["hidden_norm.weight"])
        token = rms_norm(embeds, layer["input_layernorm.weight"])
        before = self.config.get("norm_before_residual", False)
        residual = normed if before else combined
        joined = torch.cat((token, normed), -1)
        return self._rest_of_layer(layer, joined, residual, positions)

    def _rest_of_layer(
        self,
        layer: Tensors,
        inputs: torch.Tensor,
        residual: torch.Tensor,
        positions: torch.Tensor,
    ) -> torch.Tensor:
        weights = group(layer, "self_attn.")
        attention = latent if "kv_b_proj.weight" in weights else grouped_query
        after = residual + attention(inputs, positions, weights, self.config)
        normed = rms_norm(after, layer["post_attention_layernorm.weight"])
        mlp = group(layer, "mlp.")
        gate = F.silu(linear(normed, mlp, "gate_proj"))
        return after + linear(gate * linear(normed, mlp, "up_proj"), mlp, "down_proj")

# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""Causal attention over a short sequence: grouped-query, and latent."""

from typing import Any

import torch
import torch.nn.functional as F

from .reading import Tensors
from .rope import rotation


def rms_norm(states: torch.Tensor, weight: torch.Tensor, epsilon: float = 1e-6):
    """Over the last dimension."""
    wide = states.to(torch.float64)
    power = wide.square().mean(-1, keepdim=True)
    return (wide / (power + epsilon).sqrt() * weight).to(torch.float32)


def linear(states: torch.Tensor, weights: Tensors, name: str) -> torch.Tensor:
    return F.linear(states, weights[f"{name}.weight"], weights.get(f"{name}.bias"))


def scores_to_values(
    query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, scale: float
) -> torch.Tensor:
    """`[tokens, heads, size]` each; no token sees a later one."""
    scores = torch.einsum("qhd,khd->hqk", query, key) * scale
    later = torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1)
    probabilities = scores.masked_fill(later, -torch.inf).softmax(-1)
    return torch.einsum("hqk,khd->qhd", probabilities, value).flatten(1)


def grouped_query(
    inputs: torch.Tensor,
    positions: torch.Tensor,
    weights: Tensors,
    config: dict[str, Any],
) -> torch.Tensor:
    """Llama's attention, and Qwen3's where the heads have norms."""
    heads, kv_heads = config["num_attention_heads"], config["num_key_value_heads"]
    query = linear(inputs, weights, "q_proj").unflatten(1, (heads, -1))
    key = linear(inputs, weights, "k_proj").unflatten(1, (kv_heads, -1))
    value = linear(inputs, weights, "v_proj").unflatten(1, (kv_heads, -1))
    if "q_norm.weight" in weights:
        query = rms_norm(query, weights["q_norm.weight"])
        key = rms_norm(key, weights["k_norm.weight"])
    size = query.shape[-1]
    turning = rotation(config, size, latent=False)
    query, key = turning.turn(query, positions), turning.turn(key, positions)
    groups = heads // kv_heads
    key, value = key.repeat_interleave(groups, 1), value.repeat_interleave(groups, 1)
    attended = scores_to_values(query, key, value, size**-0.5)
    return linear(attended, weights, "o_proj")


def latent(
    inputs: torch.Tensor,
    positions: torch.Tensor,
    weights: Tensors,
    config: dict[str, Any],
) -> torch.Tensor:
    """DeepSeek's attention: keys and values unfold from one short vector per token."""
    heads, turned = config["num_attention_heads"], config["qk_rope_head_dim"]
    plain = config["qk_nope_head_dim"]
    if "q_a_proj.weight" in weights:
        short = linear(inputs, weights, "q_a_proj")
        short = rms_norm(short, weights["q_a_layernorm.weight"])
        query = linear(short, weights, "q_b_proj")
    else:
        query = linear(inputs, weights, "q_proj")
    query = query.unflatten(1, (heads, -1))
    folded = linear(inputs, weights, "kv_a_proj_with_mqa")
    folded, shared_key = folded[:, :-turned], folded[:, -turned:]
    folded = rms_norm(folded, weights["kv_a_layernorm.weight"])
    unfolded = linear(folded, weights, "kv_b_proj").unflatten(1, (heads, -1))
    turning = rotation(config, turned, latent=True)
    shared_key = turning.turn(shared_key[:, None], positions).expand(-1, heads, -1)
    query_turned = turning.turn(query[..., plain:], positions)
    query = torch.cat((query[..., :plain], query_turned), -1)
    key = torch.cat((unfolded[..., :plain], shared_key), -1)
    scale = (plain + turned) ** -0.5 * turning.score
    attended = scores_to_values(query, key, unfolded[..., plain:], scale)
    return linear(attended, weights, "o_proj")

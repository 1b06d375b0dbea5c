# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""Attention weights that look at one position only, for three model families.

The draft's attention must add a function of its own position to the residual stream
(``features.attention_updates``), so it has to look at nothing else. All queries and
keys are the same constant vector, and rotary embedding makes the score of a pair
depend on their distance alone. It is largest at distance 0, by a lead of at least
``SCORE_LEAD`` over every distance in reach: the weight of all other positions
together stays below 1e-25, which is nothing in float32.

Where attention has nothing to say (in the target), its weights are noise and only the
output projection is zero.
"""

import torch

from .features import (
    FEATURE_SIZE,
    FIRST,
    HIDDEN_SIZE,
    NUM_ONES,
    ONES,
    SECOND,
    attention_updates,
)

MAX_MODEL_LEN = 256
HEADS = 2
HEAD_DIM = 64
ROPE_THETA = 10000.0
SCORE_LEAD = 64.0
MLA = {
    "q_lora_rank": 64,
    "kv_lora_rank": 512,
    "qk_nope_head_dim": 128,
    "qk_rope_head_dim": 64,
    "v_head_dim": 128,
}
Weights = dict[str, torch.Tensor]


def noise(*shape: int) -> torch.Tensor:
    """A weight that must not matter."""
    return torch.randn(*shape) * 0.1


def key_scale(rotary_dim: int, score_dim: int) -> float:
    """Length per dimension of the constant query and key that gives the lead.

    Args:
        rotary_dim: Dimensions that take part in the rotation.
        score_dim: Dimensions that the kernel's ``1 / sqrt(d)`` scaling refers to.
    """
    exponents = torch.arange(0, rotary_dim, 2, dtype=torch.float64) / rotary_dim
    distances = torch.arange(1, MAX_MODEL_LEN, dtype=torch.float64)
    angles = distances.unsqueeze(1) * ROPE_THETA**-exponents
    # A pair of dimensions with the constant c contributes 2 * c^2 * cos(angle).
    lead = (2.0 * (1.0 - torch.cos(angles))).sum(1).min() / score_dim**0.5
    return float((SCORE_LEAD / lead) ** 0.5)


def _constant_rows(rows: int, value: float) -> torch.Tensor:
    """Projection of ``[embedding, hidden]`` to a constant, read from the ones."""
    weight = torch.zeros(rows, 2 * HIDDEN_SIZE)
    weight[:, ONES] = value / NUM_ONES
    return weight


def _value_output(value_dim: int) -> torch.Tensor:
    """``o_proj`` that takes ``first`` from head 0 and ``second`` from head 1."""
    weight = torch.zeros(HIDDEN_SIZE, HEADS * value_dim)
    weight[FIRST, :FEATURE_SIZE] = torch.eye(FEATURE_SIZE)
    weight[SECOND, value_dim : value_dim + FEATURE_SIZE] = torch.eye(FEATURE_SIZE)
    return weight


def _values(value_dim: int, offset: int = 0) -> torch.Tensor:
    """Per head ``offset + value_dim`` rows, the updates at the start of the values."""
    weight = torch.zeros(HEADS, offset + value_dim, 2 * HIDDEN_SIZE)
    for head, update in enumerate(attention_updates()):
        weight[head, offset : offset + FEATURE_SIZE] = update
    return weight.flatten(0, 1)


def llama_silent(input_size: int) -> Weights:
    """Attention that adds nothing to the residual stream."""
    width = HEADS * HEAD_DIM
    weights = {f"{name}_proj.weight": noise(width, input_size) for name in "qkv"}
    weights["o_proj.weight"] = torch.zeros(HIDDEN_SIZE, width)
    return weights


def llama_reading() -> Weights:
    """Attention that adds ``attention_updates`` of its own position."""
    scale = key_scale(HEAD_DIM, HEAD_DIM)
    constant = _constant_rows(HEADS * HEAD_DIM, scale)
    return {
        "q_proj.weight": constant,
        "k_proj.weight": constant.clone(),
        "v_proj.weight": _values(HEAD_DIM),
        "o_proj.weight": _value_output(HEAD_DIM),
    }


def qwen3_silent(input_size: int) -> Weights:
    """As ``llama_silent``; this family also normalises each head."""
    weights = llama_silent(input_size)
    weights["q_norm.weight"] = torch.ones(HEAD_DIM)
    weights["k_norm.weight"] = torch.ones(HEAD_DIM)
    return weights


def qwen3_reading() -> Weights:
    """As ``llama_reading``; the head norms undo any scale, so they carry it."""
    scale = torch.full((HEAD_DIM,), key_scale(HEAD_DIM, HEAD_DIM))
    constant = _constant_rows(HEADS * HEAD_DIM, 1.0)
    return llama_reading() | {
        "q_proj.weight": constant,
        "k_proj.weight": constant.clone(),
        "q_norm.weight": scale,
        "k_norm.weight": scale.clone(),
    }


def deepseek_silent(input_size: int) -> Weights:
    """As ``llama_silent``, through multi-head latent attention."""
    key_dim = MLA["qk_nope_head_dim"] + MLA["qk_rope_head_dim"]
    latent, rank = MLA["kv_lora_rank"], MLA["q_lora_rank"]
    return {
        "q_a_proj.weight": noise(rank, input_size),
        "q_a_layernorm.weight": torch.ones(rank),
        "q_b_proj.weight": noise(HEADS * key_dim, rank),
        "kv_a_proj_with_mqa.weight": noise(
            latent + MLA["qk_rope_head_dim"], input_size
        ),
        "kv_a_layernorm.weight": torch.ones(latent),
        "kv_b_proj.weight": noise(
            HEADS * (MLA["qk_nope_head_dim"] + MLA["v_head_dim"]), latent
        ),
        "o_proj.weight": torch.zeros(HIDDEN_SIZE, HEADS * MLA["v_head_dim"]),
    }


def deepseek_reading() -> Weights:
    """As ``llama_reading``, through the latent bottleneck.

    It holds a copy of the input, 256 of 512 dimensions, so its root mean square is
    the root of a half; the latent norm's weight undoes that.
    """
    nope, rope = MLA["qk_nope_head_dim"], MLA["qk_rope_head_dim"]
    latent, rank = MLA["kv_lora_rank"], MLA["q_lora_rank"]
    scale = key_scale(rope, nope + rope)
    query = torch.zeros(HEADS, nope + rope, rank)
    query[:, nope:] = scale / rank
    copy = torch.zeros(latent, 2 * HIDDEN_SIZE)
    copy[: 2 * HIDDEN_SIZE] = torch.eye(2 * HIDDEN_SIZE)
    values = _values(MLA["v_head_dim"], offset=nope)
    padding = torch.zeros(values.shape[0], latent - 2 * HIDDEN_SIZE)
    return {
        "q_a_proj.weight": _constant_rows(rank, 1.0),
        "q_a_layernorm.weight": torch.ones(rank),
        "q_b_proj.weight": query.flatten(0, 1),
        "kv_a_proj_with_mqa.weight": torch.cat([copy, _constant_rows(rope, scale)]),
        "kv_a_layernorm.weight": torch.full((latent,), 0.5**0.5),
        "kv_b_proj.weight": torch.cat([values, padding], 1),
        "o_proj.weight": _value_output(MLA["v_head_dim"]),
    }

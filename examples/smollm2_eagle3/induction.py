# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""An EAGLE-3 layer that nobody trained: an induction head, written down by hand.

Text repeats itself. If the newest token has occurred before, what followed it then is
a fair guess at what follows now. One attention layer of an EAGLE-3 draft can say
exactly that, because at position `p` it reads both the target's hidden state, which
knows token `p`, and the embedding of token `p + 1`:

    query    the newest token, from its embedding
    key      token p, from the target's hidden state after two layers
    value    token p + 1, from its embedding
    output   the value, turned back into an embedding, for the target's own head

The maps come from the target's weights by linear algebra: no data, no gradient.
"""

from dataclasses import dataclass

import torch

Tensors = dict[str, torch.Tensor]


@dataclass(frozen=True, kw_only=True)
class Shape:
    """What the layer takes over from the target."""

    hidden: int
    heads: int
    kv_heads: int
    head_dim: int
    intermediate: int
    aux_states: int


# Pairs of rotary dimensions turn the slower, the higher their number. The faster ones
# would unmake a match that lies far back. Chosen among 8 to 24 by agreement with the
# target's answers, as are the next two.
FIRST_SLOW_PAIR = 11
# Score of a matching pair of tokens before the softmax, about.
SHARPNESS = 30.0
# Ridge of the whitening, as a part of the mean variance.
RIDGE = 0.3
VALUE_RIDGE = 0.1
# The guess must drown the residual stream, which knows the newest token only.
OUTPUT_GAIN = 50.0
RESIDUAL_SCALE = 0.01


def build_layer(
    shape: Shape, embeddings: torch.Tensor, states: torch.Tensor
) -> Tensors:
    """Returns the draft's weights by checkpoint name, float32.

    Args:
        embeddings: of the tokens to recognise, `[tokens, hidden]`.
        states: the first auxiliary hidden state for the same tokens,
            `[tokens, hidden]`.
    """
    tokens, states = _normed(embeddings), _normed(states)
    queries, keys = _matching_maps(shape, tokens, states)
    read, write = _value_maps(tokens, shape.kv_heads * shape.head_dim)
    hidden, one = shape.hidden, torch.ones(shape.hidden)
    mlp = torch.zeros(shape.intermediate, hidden)
    # Only the first auxiliary state is read.
    fc = torch.zeros(hidden, shape.aux_states * hidden)
    fc[:, :hidden] = RESIDUAL_SCALE * torch.eye(hidden)
    nothing = torch.zeros_like(queries)
    layer = {
        "input_layernorm.weight": one,
        "hidden_norm.weight": one,
        # Attention reads [embedding, hidden state].
        "self_attn.q_proj.weight": torch.cat((queries, nothing), dim=1),
        "self_attn.k_proj.weight": torch.cat((torch.zeros_like(keys), keys), dim=1),
        "self_attn.v_proj.weight": torch.cat((read, torch.zeros_like(read)), dim=1),
        "self_attn.o_proj.weight": _spread_over_heads(shape, OUTPUT_GAIN * write),
        "post_attention_layernorm.weight": one,
        "mlp.gate_proj.weight": mlp,
        "mlp.up_proj.weight": mlp,
        "mlp.down_proj.weight": mlp.T,
    }
    weights = {f"midlayer.{name}": weight for name, weight in layer.items()}
    # safetensors stores every tensor by itself: no shared memory, no views.
    return {
        name: weight.clone(memory_format=torch.contiguous_format)
        for name, weight in (weights | {"fc.weight": fc, "norm.weight": one}).items()
    }


def _matching_maps(
    shape: Shape, tokens: torch.Tensor, states: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Maps under which a token's embedding and its hidden state coincide.

    These are the leading canonical correlations of the two; mean directions stay in,
    for they whiten away.

    Returns:
        `[heads * head_dim, hidden]` and `[kv_heads * head_dim, hidden]`.
    """
    white_tokens, white_states = _whitening(tokens), _whitening(states)
    correlation = (tokens @ white_tokens).T @ (states @ white_states) / len(tokens)
    left, _, right = torch.linalg.svd(correlation)
    dims = _slow_dims(shape.head_dim)
    query = left[:, : len(dims)].T @ white_tokens
    key = right[: len(dims)] @ white_states
    query /= (tokens @ query.T).norm(dim=-1).mean()
    key /= (states @ key.T).norm(dim=-1).mean()
    query *= SHARPNESS * shape.head_dim**0.5
    group = shape.heads // shape.kv_heads
    queries = torch.zeros(shape.kv_heads, group, shape.head_dim, shape.hidden)
    keys = torch.zeros(shape.kv_heads, shape.head_dim, shape.hidden)
    # All key/value heads attend alike; each carries a part of the value. One query
    # head of each group is enough.
    queries[:, 0, dims] = query
    keys[:, dims] = key
    return queries.reshape(-1, shape.hidden), keys.reshape(-1, shape.hidden)


def _slow_dims(head_dim: int) -> list[int]:
    half = head_dim // 2
    slow = range(FIRST_SLOW_PAIR, half)
    return [*slow, *(half + pair for pair in slow)]


def _value_maps(tokens: torch.Tensor, width: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Maps an embedding to its main components, and those to where logits tell apart.

    Dividing by the variance makes the target's head score the token itself highest.

    Returns:
        `[width, hidden]` and `[hidden, width]`.
    """
    centred = tokens - tokens.mean(dim=0)
    variance, basis = torch.linalg.eigh(centred.T @ centred / len(tokens))
    variance, basis = variance[-width:], basis[:, -width:]
    variance = variance + VALUE_RIDGE * variance.mean()
    return basis.T / variance[:, None], basis


def _spread_over_heads(shape: Shape, write: torch.Tensor) -> torch.Tensor:
    """Places `[hidden, kv_heads * head_dim]` at the first query head of each group."""
    group = shape.heads // shape.kv_heads
    spread = torch.zeros(shape.hidden, shape.kv_heads, group, shape.head_dim)
    spread[:, :, 0] = write.view(shape.hidden, shape.kv_heads, shape.head_dim)
    return spread.reshape(shape.hidden, -1)


def _whitening(samples: torch.Tensor) -> torch.Tensor:
    moment = samples.T @ samples / len(samples)
    ridge = RIDGE * moment.diagonal().mean()
    variance, basis = torch.linalg.eigh(moment + ridge * torch.eye(len(moment)))
    return basis @ torch.diag(variance.rsqrt()) @ basis.T


def _normed(rows: torch.Tensor) -> torch.Tensor:
    """What an RMS norm with unit weights makes of the rows."""
    return rows * rows.square().mean(dim=-1, keepdim=True).rsqrt()

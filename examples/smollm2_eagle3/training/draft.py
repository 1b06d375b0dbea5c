# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""The draft: one Llama layer in the EAGLE-3 layout, trained and walked alike.

A chain starts at each position `i` of a text. Its first step reads the target's
hidden states of token `i` and the embedding of token `i + 1`, and guesses token
`i + 2`. Each later step reads the hidden state that the step before put out, and the
embedding of one token more. Keys and values of the first steps belong to all chains,
those of later steps to their chain alone: an engine overwrites them once the target
has spoken (EAGLE-3, arXiv 2503.01840, "training-time test").
"""

from collections.abc import Callable, Iterator

import torch
from target import Shape, Target, rotary, rotate
from torch import Tensor, nn
from torch.nn import functional

# Makes the tokens that a step reads, from its number and the states of the step
# before it (None at the first step).
Reader = Callable[[int, Tensor | None], Tensor]


class Draft(nn.Module):
    """The trained part. Its state dict has the names of a checkpoint."""

    def __init__(self, shape: Shape, aux_states: int) -> None:
        super().__init__()
        self.shape = shape
        self.fc = nn.Linear(aux_states * shape.hidden, shape.hidden, bias=False)
        self.midlayer = _Layer(shape)
        self.norm = nn.RMSNorm(shape.hidden, eps=shape.eps)

    def chains(
        self, aux: Tensor, embeddings: Tensor, read: Reader, steps: int
    ) -> Iterator[Tensor]:
        """Yields the normed hidden states of each step of all chains.

        Args:
            aux: the target's states, side by side,
                `[sequences, positions, aux_states * hidden]`.
            embeddings: the target's, `[vocabulary, hidden]`.
            read: gives the tokens of a step, `[sequences, positions]`.
            steps: how many steps each chain has.
        """
        states = self.fc(aux).float()  # the residual stays exact
        attention = ChainAttention(self.shape, aux.shape[1])
        normed = None
        for step in range(steps):
            tokens = read(step, normed)
            embedded = functional.embedding(tokens, embeddings).float()
            states = self.midlayer(embedded, states, attention)
            normed = self.norm(states)
            yield normed

    def start_from(self, target: Target) -> None:
        """Takes over what the target's last layer knows.

        The layer then continues the last auxiliary state as the target would have;
        the weights that read embeddings begin near zero, and training grows them.
        """
        layer, hidden = target.layers[-1], self.shape.hidden
        weights = self.midlayer
        with torch.no_grad():
            sizes = [linear.out_features for linear in weights.self_attn.inputs()]
            for linear, known in zip(
                weights.self_attn.inputs(), layer.qkv.split(sizes), strict=True
            ):
                nn.init.normal_(linear.weight, std=1e-3)
                linear.weight[:, hidden:] = known
            weights.self_attn.o_proj.weight.copy_(layer.o)
            gate, up = layer.gate_up.chunk(2)
            weights.mlp.gate_proj.weight.copy_(gate)
            weights.mlp.up_proj.weight.copy_(up)
            weights.mlp.down_proj.weight.copy_(layer.down)
            weights.hidden_norm.weight.copy_(layer.before)
            weights.post_attention_layernorm.weight.copy_(layer.after)
            self.norm.weight.copy_(target.norm)
            self.fc.weight.zero_()
            self.fc.weight[:, -hidden:] = torch.eye(hidden)


class ChainAttention:
    """Lets each step see the first steps up to its chain's start, and its own chain.

    One object serves one pass over all steps: it keeps their keys and values.
    """

    def __init__(self, shape: Shape, positions: int) -> None:
        self.shape = shape
        self.positions = torch.arange(positions)
        future = self.positions[None] > self.positions[:, None]
        self.future = torch.zeros(future.shape).masked_fill_(future, float("-inf"))
        self.keys: list[Tensor] = []
        self.values: list[Tensor] = []

    def __call__(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """Adds a step's keys and values and mixes values for its queries.

        Args:
            q: `[sequences, heads, positions, head_dim]`.
            k: `[sequences, kv_heads, positions, head_dim]`; v alike.

        Returns:
            Like `q`.
        """
        turns = rotary(self.positions + len(self.keys), self.shape, q.dtype)
        group = self.shape.heads // self.shape.kv_heads
        q = rotate(q, *turns)
        self.keys.append(rotate(k, *turns).repeat_interleave(group, dim=1))
        self.values.append(v.repeat_interleave(group, dim=1))
        if len(self.keys) == 1:
            return functional.scaled_dot_product_attention(
                q, self.keys[0], self.values[0], is_causal=True
            )
        shared = q @ self.keys[0].transpose(2, 3)
        own = [(q * keys).sum(dim=-1, keepdim=True) for keys in self.keys[1:]]
        scores = torch.cat((shared, *own), dim=-1)
        scores = scores * self.shape.head_dim**-0.5
        width = len(self.positions)
        bias = functional.pad(self.future, (0, len(own)))
        weights = (scores + bias).softmax(dim=-1).to(q.dtype)
        mixed = weights[..., :width] @ self.values[0]
        for index, values in enumerate(self.values[1:]):
            mixed = mixed + weights[..., width + index, None] * values
        return mixed


class _Layer(nn.Module):
    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.input_layernorm = nn.RMSNorm(shape.hidden, eps=shape.eps)
        self.hidden_norm = nn.RMSNorm(shape.hidden, eps=shape.eps)
        self.post_attention_layernorm = nn.RMSNorm(shape.hidden, eps=shape.eps)
        self.self_attn = _Attention(shape)
        self.mlp = _MLP(shape)

    def forward(
        self, embedded: Tensor, states: Tensor, attention: ChainAttention
    ) -> Tensor:
        normed = self.input_layernorm(embedded), self.hidden_norm(states)
        states = states + self.self_attn(torch.cat(normed, dim=-1), attention)
        return states + self.mlp(self.post_attention_layernorm(states))


class _Attention(nn.Module):
    def __init__(self, shape: Shape) -> None:
        super().__init__()
        width = shape.heads * shape.head_dim
        kv_width = shape.kv_heads * shape.head_dim
        self.head_dim = shape.head_dim
        self.q_proj = nn.Linear(2 * shape.hidden, width, bias=False)
        self.k_proj = nn.Linear(2 * shape.hidden, kv_width, bias=False)
        self.v_proj = nn.Linear(2 * shape.hidden, kv_width, bias=False)
        self.o_proj = nn.Linear(width, shape.hidden, bias=False)

    def inputs(self) -> tuple[nn.Linear, nn.Linear, nn.Linear]:
        return self.q_proj, self.k_proj, self.v_proj

    def forward(self, states: Tensor, attention: ChainAttention) -> Tensor:
        q, k, v = (
            linear(states).unflatten(-1, (-1, self.head_dim)).transpose(1, 2)
            for linear in self.inputs()
        )
        mixed = attention(q, k, v).transpose(1, 2).flatten(2)
        return self.o_proj(mixed)


class _MLP(nn.Module):
    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.gate_proj = nn.Linear(shape.hidden, shape.intermediate, bias=False)
        self.up_proj = nn.Linear(shape.hidden, shape.intermediate, bias=False)
        self.down_proj = nn.Linear(shape.intermediate, shape.hidden, bias=False)

    def forward(self, states: Tensor) -> Tensor:
        gated = functional.silu(self.gate_proj(states)) * self.up_proj(states)
        return self.down_proj(gated)

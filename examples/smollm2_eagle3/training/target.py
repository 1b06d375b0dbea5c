# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""The target as plain PyTorch: fast batches on a CPU, and a view of its insides.

An engine serves requests; making training data asks for two other things: hundreds of
sequences of like length at once, and hidden states from the middle of the model.
"""

import json
from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors.torch import load_file
from torch import Tensor
from torch.nn import functional

BLOCK = 32


@dataclass(frozen=True)
class Shape:
    """What the layers of target and draft have in common."""

    hidden: int
    heads: int
    kv_heads: int
    head_dim: int
    intermediate: int
    layers: int
    vocabulary: int
    eps: float
    rope_theta: float

    @classmethod
    def read(cls, folder: Path) -> "Shape":
        """Reads the shape from the `config.json` of a Llama model folder."""
        config = json.loads((folder / "config.json").read_text())
        return cls(
            hidden=config["hidden_size"],
            heads=config["num_attention_heads"],
            kv_heads=config["num_key_value_heads"],
            head_dim=config["head_dim"],
            intermediate=config["intermediate_size"],
            layers=config["num_hidden_layers"],
            vocabulary=config["vocab_size"],
            eps=config["rms_norm_eps"],
            rope_theta=config["rope_parameters"]["rope_theta"],
        )


def rms_norm(states: Tensor, weight: Tensor, eps: float) -> Tensor:
    """Root-mean-square norm, computed in float32, `[..., hidden]`."""
    return functional.rms_norm(states.float(), weight.shape, weight.float(), eps).to(
        states.dtype
    )


def rotary(
    positions: Tensor, shape: Shape, dtype: torch.dtype
) -> tuple[Tensor, Tensor]:
    """Returns cosines and sines, `[..., head_dim]`, for integer positions."""
    exponent = torch.arange(0, shape.head_dim, 2).float() / shape.head_dim
    angles = positions[..., None].float() / shape.rope_theta**exponent
    angles = torch.cat((angles, angles), dim=-1)
    return angles.cos().to(dtype), angles.sin().to(dtype)


def rotate(states: Tensor, cosines: Tensor, sines: Tensor) -> Tensor:
    """Turns each half of a head against the other (the rotary embedding)."""
    first, second = states.chunk(2, dim=-1)
    return states * cosines + torch.cat((-second, first), dim=-1) * sines


class Cache:
    """Keys and values of a batch, `[sequences, kv_heads, room, head_dim]` each.

    The room grows in blocks. It is used as a whole, since batched products on a CPU
    copy what is not contiguous; a mask hides the unused end.
    """

    def __init__(self, sequences: int, shape: Shape, dtype: torch.dtype) -> None:
        size = (sequences, shape.kv_heads, 0, shape.head_dim)
        self.keys = [torch.zeros(size, dtype=dtype) for _ in range(shape.layers)]
        self.values = [torch.zeros(size, dtype=dtype) for _ in range(shape.layers)]
        self.length = 0

    @property
    def room(self) -> int:
        """How many tokens fit."""
        return self.keys[0].shape[2]

    def reserve(self, new: int) -> None:
        """Makes room for `new` more tokens."""
        missing = self.length + new - self.room
        if missing > 0:
            grow = (0, 0, 0, -(-missing // BLOCK) * BLOCK)
            self.keys = [functional.pad(keys, grow) for keys in self.keys]
            self.values = [functional.pad(values, grow) for values in self.values]

    def keep(self, rows: Tensor) -> None:
        """Drops all sequences but `rows`."""
        self.keys = [keys[rows] for keys in self.keys]
        self.values = [values[rows] for values in self.values]


class Target:
    """A Llama model with tied embeddings; weights of one dtype, no gradients."""

    def __init__(self, folder: Path, dtype: torch.dtype = torch.bfloat16) -> None:
        self.shape = Shape.read(folder)
        self.dtype = dtype
        raw = load_file(folder / "model.safetensors")
        weights = {name: weight.to(dtype) for name, weight in raw.items()}
        self.embeddings = weights["model.embed_tokens.weight"]
        self.norm = weights["model.norm.weight"]
        self.layers = [
            _Layer(weights, f"model.layers.{index}.", self.shape)
            for index in range(self.shape.layers)
        ]

    @torch.no_grad()
    def states(
        self, tokens: Tensor, padding: Tensor, cache: Cache, taps: tuple[int, ...] = ()
    ) -> tuple[Tensor, list[Tensor]]:
        """Runs the layers over new tokens behind what the cache holds.

        Args:
            tokens: ids, `[sequences, new]`, padded on the left.
            padding: how many tokens of each sequence are padding, `[sequences]`.
            cache: keys and values so far; the new ones are added.
            taps: layers whose input is wanted.

        Returns:
            Normed hidden states, and the inputs of the layers in `taps`, each
            `[sequences, new, hidden]`.
        """
        start, new = cache.length, tokens.shape[1]
        cache.reserve(new)
        places = torch.arange(start, start + new)
        positions = (places[None] - padding[:, None]).clamp(min=0)
        turns = tuple(
            part[:, None] for part in rotary(positions, self.shape, self.dtype)
        )
        seen = torch.arange(cache.room)
        mask = (seen[None, None] <= places[None, :, None]) & (
            seen[None, None] >= padding[:, None, None]
        )
        # A padding token sees itself, so that no softmax is empty.
        mask |= seen[None, None] == places[None, :, None]
        bias = torch.zeros(mask.shape, dtype=self.dtype)
        bias.masked_fill_(~mask, float("-inf"))
        states = functional.embedding(tokens, self.embeddings)
        tapped = []
        for index, layer in enumerate(self.layers):
            if index in taps:
                tapped.append(states)
            states = layer(states, turns, bias[:, None], cache, index)
        cache.length += new
        return rms_norm(states, self.norm, self.shape.eps), tapped

    def logits(self, states: Tensor) -> Tensor:
        """Returns logits over the vocabulary, `[..., vocabulary]`."""
        return functional.linear(states, self.embeddings)


class _Layer:
    """One layer with fused projections."""

    def __init__(self, weights: dict[str, Tensor], prefix: str, shape: Shape) -> None:
        def weight(name: str) -> Tensor:
            return weights[f"{prefix}{name}.weight"]

        self.shape = shape
        self.qkv = torch.cat([weight(f"self_attn.{part}_proj") for part in "qkv"])
        self.o = weight("self_attn.o_proj")
        self.gate_up = torch.cat([weight("mlp.gate_proj"), weight("mlp.up_proj")])
        self.down = weight("mlp.down_proj")
        self.before = weight("input_layernorm")
        self.after = weight("post_attention_layernorm")

    def __call__(
        self,
        states: Tensor,
        turns: tuple[Tensor, Tensor],
        bias: Tensor,
        cache: Cache,
        index: int,
    ) -> Tensor:
        normed = rms_norm(states, self.before, self.shape.eps)
        states = states + self._attend(normed, turns, bias, cache, index)
        normed = rms_norm(states, self.after, self.shape.eps)
        gate, up = functional.linear(normed, self.gate_up).chunk(2, dim=-1)
        return states + functional.linear(functional.silu(gate) * up, self.down)

    def _attend(
        self,
        states: Tensor,
        turns: tuple[Tensor, Tensor],
        bias: Tensor,
        cache: Cache,
        index: int,
    ) -> Tensor:
        shape, (sequences, new, _) = self.shape, states.shape
        fused = functional.linear(states, self.qkv)
        fused = fused.view(sequences, new, -1, shape.head_dim).transpose(1, 2)
        q, k, v = fused.split((shape.heads, shape.kv_heads, shape.kv_heads), dim=1)
        keys, values = cache.keys[index], cache.values[index]
        keys[:, :, cache.length : cache.length + new] = rotate(k, *turns)
        values[:, :, cache.length : cache.length + new] = v
        q = rotate(q, *turns)
        if new == 1:
            mixed = _attend_once(q, keys, values, bias)
        else:
            mixed = functional.scaled_dot_product_attention(
                q, keys, values, attn_mask=bias, enable_gqa=True
            )
        mixed = mixed.transpose(1, 2).reshape(sequences, new, -1)
        return functional.linear(mixed, self.o)


def _attend_once(q: Tensor, keys: Tensor, values: Tensor, bias: Tensor) -> Tensor:
    """Attention of one new token; query heads of a group share one product."""
    sequences, heads, _, head_dim = q.shape
    rows = sequences * keys.shape[1]
    # Three-dimensional products read the cache in place; matmul would copy it.
    grouped = q.reshape(rows, -1, head_dim)
    scores = torch.bmm(grouped, keys.flatten(0, 1).transpose(1, 2))
    scores = scores.view(sequences, heads, 1, -1) * head_dim**-0.5 + bias
    weights = scores.softmax(dim=-1).view(rows, -1, keys.shape[2])
    return torch.bmm(weights, values.flatten(0, 1)).view(sequences, heads, 1, head_dim)

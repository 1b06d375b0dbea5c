# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""The example's target and draft without vLLM, to check a server against.

The target is the one of transformers, the draft a second implementation in plain
PyTorch after the paper (arXiv 2503.01840). Both read whole texts at once.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors.torch import load_file
from torch.nn.functional import linear, rms_norm, silu
from transformers import AutoModelForCausalLM, DynamicCache

DRAFT_TOKENS = 3


@dataclass(frozen=True)
class Request:
    """Token ids of a prompt and of its whole answer, an end of sequence included."""

    prompt: tuple[int, ...]
    answer: tuple[int, ...]


@dataclass(frozen=True)
class Reading:
    """What the target makes of a request.

    Attributes:
        tokens: `[tokens]` int64, prompt, answer and what the target would go on with:
            vLLM verifies a step's proposals as a whole, also beyond the answer's end.
        start: place of the answer's first token.
        end: place after the answer's last token.
        choices: `[tokens]` int64, the target's best next token at each place.
        features: `[tokens, aux, hidden]` float32, the hidden states that the draft is
            handed.
    """

    tokens: torch.Tensor
    start: int
    end: int
    choices: torch.Tensor
    features: torch.Tensor


class Target:
    """The model whose answers are drafted, in float32.

    Args:
        folder: model folder.
        aux_layers: the draft is handed the inputs of these layers.
    """

    def __init__(self, folder: Path, aux_layers: Sequence[int]) -> None:
        self._model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
        self._aux_layers = tuple(aux_layers)
        self.embeddings = self._model.get_input_embeddings().weight.detach()
        self.head = self._model.get_output_embeddings().weight.detach()

    @torch.inference_mode()
    def read(self, request: Request) -> Reading:
        """Reads a request in one pass, and goes on for as long as a draft can look."""
        cache = DynamicCache(config=self._model.config)
        tokens = torch.tensor(request.prompt + request.answer)
        passes = [self._forward(tokens, cache)]
        for _ in range(DRAFT_TOKENS):
            tokens = torch.cat((tokens, passes[-1][0][-1:]))
            passes.append(self._forward(tokens[-1:], cache))
        choices, features = map(torch.cat, zip(*passes, strict=True))
        start = len(request.prompt)
        return Reading(tokens, start, start + len(request.answer), choices, features)

    def _forward(
        self, tokens: torch.Tensor, cache: DynamicCache
    ) -> tuple[torch.Tensor, torch.Tensor]:
        output = self._model(
            tokens[None], past_key_values=cache, output_hidden_states=True
        )
        states = [output.hidden_states[layer][0] for layer in self._aux_layers]
        return output.logits[0].argmax(-1), torch.stack(states, dim=1)


class Draft:
    """One Llama layer that reads the target's hidden states beside the text.

    Args:
        folder: draft folder; the layer is called `midlayer`.
        target: lends its embeddings, and its head if the draft has none.
    """

    def __init__(self, folder: Path, target: Target) -> None:
        self._config = json.loads((folder / "config.json").read_text())
        weights = load_file(folder / "model.safetensors")
        offsets = weights.pop("d2t", None)
        weights.pop("t2d", None)
        self._weights = {name: weight.float() for name, weight in weights.items()}
        self._embeddings = target.embeddings
        self._head = self._weights.get("lm_head.weight", target.head)
        self._target_ids = torch.arange(len(self._head))
        if offsets is not None:
            self._target_ids += offsets

    @torch.inference_mode()
    def propose(self, reading: Reading) -> torch.Tensor:
        """Returns what is proposed after each token of the answer.

        That depends on the true text up to there alone, whatever was proposed or
        rejected before, so all places are computed at once.

        Returns:
            `[answer tokens, DRAFT_TOKENS]` int64. Row `i` follows the answer's token
            `i`, whose embedding the draft reads beside the features of the token
            before.
        """
        state = self._linear("fc", reading.features[: reading.end - 1].flatten(1))
        newest = reading.tokens[1 : reading.end]
        proposals, steps = [], []
        for step in range(DRAFT_TOKENS):
            state = self._layer(state, self._embeddings[newest], step, steps)
            logits = self._norm("norm", state) @ self._head.T
            newest = self._target_ids[logits.argmax(-1)]
            proposals.append(newest)
        return torch.stack(proposals, dim=1)[reading.start - 1 :]

    def _layer(
        self,
        state: torch.Tensor,
        embedding: torch.Tensor,
        step: int,
        steps: list[tuple[torch.Tensor, torch.Tensor]],
    ) -> torch.Tensor:
        """Maps `[tokens, hidden]` twice to the same; adds to the keys and values."""
        embedding = self._norm("midlayer.input_layernorm", embedding)
        normed = self._norm("midlayer.hidden_norm", state)
        attended = self._attend(torch.cat((embedding, normed), -1), step, steps)
        state = state + attended
        normed = self._norm("midlayer.post_attention_layernorm", state)
        gate = silu(self._linear("midlayer.mlp.gate_proj", normed))
        up = self._linear("midlayer.mlp.up_proj", normed)
        return state + self._linear("midlayer.mlp.down_proj", gate * up)

    def _attend(
        self,
        inputs: torch.Tensor,
        step: int,
        steps: list[tuple[torch.Tensor, torch.Tensor]],
    ) -> torch.Tensor:
        """Attends to the true text up to each place, then to the steps taken there.

        The first step sees all places before it. A later one, a token further on,
        sees the same ones and the earlier steps of its own place.
        """
        query, key, value = (self._heads(name, inputs) for name in "qkv")
        group = query.shape[1] // key.shape[1]
        key, value = (x.repeat_interleave(group, dim=1) for x in (key, value))
        positions = torch.arange(len(inputs)) + step
        query, key = (self._rotate(x, positions) for x in (query, key))
        steps.append((key, value))
        (text_keys, text_values), own = steps[0], steps[1:]
        scores = torch.einsum("qhd,khd->qhk", query, text_keys)
        later = torch.ones(len(inputs), len(inputs), dtype=torch.bool).triu(1)
        scores = [scores.masked_fill(later[:, None], float("-inf"))]
        scores += [(query * keys).sum(-1, keepdim=True) for keys, _ in own]
        shares = (torch.cat(scores, -1) / query.shape[-1] ** 0.5).softmax(-1)
        text_shares, own_shares = shares.split([len(inputs), len(own)], dim=-1)
        attended = torch.einsum("qhk,khd->qhd", text_shares, text_values)
        for share, (_, values) in zip(own_shares.unbind(-1), own, strict=True):
            attended = attended + share[..., None] * values
        return self._linear("midlayer.self_attn.o_proj", attended.flatten(1))

    def _heads(self, name: str, inputs: torch.Tensor) -> torch.Tensor:
        projected = self._linear(f"midlayer.self_attn.{name}_proj", inputs)
        return projected.unflatten(-1, (-1, self._config["head_dim"]))

    def _rotate(self, vectors: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
        """Turns each pair of `[tokens, heads, head_dim]` by an angle that grows."""
        half = self._config["head_dim"] // 2
        theta = self._config["rope_parameters"]["rope_theta"]
        frequencies = theta ** (-torch.arange(half) / half)
        angles = (positions[:, None] * frequencies)[:, None]
        first, second = vectors.split(half, dim=-1)
        return torch.cat(
            (
                first * angles.cos() - second * angles.sin(),
                second * angles.cos() + first * angles.sin(),
            ),
            dim=-1,
        )

    def _norm(self, name: str, states: torch.Tensor) -> torch.Tensor:
        weight = self._weights[f"{name}.weight"]
        return rms_norm(states, weight.shape, weight, self._config["rms_norm_eps"])

    def _linear(self, name: str, states: torch.Tensor) -> torch.Tensor:
        return linear(states, self._weights[f"{name}.weight"])

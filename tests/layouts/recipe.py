# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""What a recipe for a draft checkpoint says: pure data, see `checkpoint.py`.

Vocabulary sizes are the real ones, because the contract is about them. All other sizes
are written as published and scaled down together, so that ratios such as
`heads * head_dim` over `hidden` stay.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import EllipsisType
from typing import Any, Literal

import torch

# Of the scaled-down drafts; vLLM's CPU attention takes no smaller heads.
HEAD_DIM = 32
HEADS = 2
LATENT = {
    "q_lora_rank": 32,
    "kv_lora_rank": 512,
    "qk_nope_head_dim": 128,
    "qk_rope_head_dim": 64,
    "v_head_dim": 128,
}
# Every real draft with latent attention has it. Without it vLLM 0.32 on a CPU turns
# queries by wrong angles: its kernel takes `[tokens, heads, size]` for a matrix.
DEEPSEEK_YARN = {
    "beta_fast": 1.0,
    "beta_slow": 1.0,
    "factor": 64.0,
    "mscale": 1.0,
    "mscale_all_dim": 1.0,
    "original_max_position_embeddings": 4096,
    "type": "yarn",
}

Shipped = Literal["always", "pruned", "never"]
Form = Literal["plain", "eagle3", "peagle"]
Files = Literal["safetensors", "shards", "bin"]


def eighths(value: float) -> int:
    """The multiple of 8 nearest to `value`, at least 8."""
    return max(8, 8 * round(value / 8))


@dataclass(frozen=True)
class Sizes:
    """Of a draft as published, or of its target's family where no page states them."""

    hidden: int
    intermediate: int
    heads: int = 32
    kv_heads: int = 8
    head_dim: int = 128
    target_hidden: int | None = None

    def scaled(self) -> "Sizes":
        """Two heads of 32, everything else in proportion."""
        ratio = HEADS * HEAD_DIM / (self.heads * self.head_dim)
        hidden = eighths(self.hidden * ratio)
        return Sizes(
            hidden=hidden,
            intermediate=eighths(hidden * self.intermediate / self.hidden),
            heads=HEADS,
            kv_heads=HEADS if self.kv_heads == self.heads else 1,
            head_dim=HEAD_DIM,
            target_hidden=eighths(hidden * self.target_hidden / self.hidden)
            if self.target_hidden
            else hidden,
        )


@dataclass(frozen=True, kw_only=True)
class Exporter:
    """What one training framework writes.

    Attributes:
        architectures: `None` where the config has no such key.
        form: a plain config, or speculators' nesting for one of two algorithms.
        layer: name of the first layer; later ones are `layers.N`.
        prefix: before every name but `lm_head`, and before the map's.
        embed, head: whether these modules are saved.
        d2t, t2d: when the map's tensors are saved.
        keys: config keys beyond sizes; `...` removes a key.
    """

    architectures: tuple[str, ...] | None
    model_type: str | None = "llama"
    form: Form = "plain"
    layer: str = "midlayer"
    prefix: str = ""
    embed: bool = False
    head: bool = True
    d2t: Shipped = "pruned"
    t2d: Shipped = "pruned"
    dtype: torch.dtype = torch.bfloat16
    files: Files = "safetensors"
    keys: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """One public draft.

    Attributes:
        name: of the draft, as its users know it.
        vocab: `vocab_size` of the draft's config.
        draft_vocab: `draft_vocab_size`; `None` is null, `...` an absent key.
        target_vocab: of the target, where it is not `vocab`.
        target_layers: of the target, so that layer ids make sense.
        layers: in the file, whatever the config says.
        aux: auxiliary states that `fc` reads, 0 for a draft without `fc`.
        further: groups of tensors beyond the plain ones: `input_norm`, `fc_norm`,
            `mask_hidden`, `qkv_bias`, `o_bias`.
        t2d_value: what the mask of a full vocabulary holds.
        refused: what the refusal must say, where this draft cannot be served.
    """

    name: str
    exporter: Exporter
    vocab: int
    draft_vocab: int | None | EllipsisType
    sizes: Sizes
    family: Literal["llama", "qwen3", "deepseek"] = "llama"
    target_vocab: int | None = None
    target_layers: int = 64
    layers: int = 1
    aux: int = 3
    further: tuple[str, ...] = ()
    keys: Mapping[str, Any] = field(default_factory=dict)
    t2d_value: bool = True
    refused: str | None = None

    @property
    def target(self) -> int:
        return self.target_vocab or self.vocab

    @property
    def head_rows(self) -> int:
        return self.draft_vocab if isinstance(self.draft_vocab, int) else self.vocab

    @property
    def is_parallel(self) -> bool:
        return "mask_hidden" in self.further

    def ships(self, when: Shipped) -> bool:
        return when == "always" or (when == "pruned" and self.head_rows < self.vocab)

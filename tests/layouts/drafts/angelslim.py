# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""Tencent AngelSlim: `midlayer.*`, no embeddings, both of the map's tensors always.

Its mask is all false until a mapping is built, so a full vocabulary ships it so.
"""

from dataclasses import replace

from ..recipe import Exporter, Recipe, Sizes

_ANGELSLIM = Exporter(
    architectures=("LlamaForCausalLMEagle3",),
    d2t="always",
    t2d="always",
    keys={"rope_theta": 1_000_000, "attention_bias": False},
)

ANGELSLIM = (
    Recipe(
        name="AngelSlim/Qwen3-8B_eagle3",
        exporter=_ANGELSLIM,
        vocab=151936,
        draft_vocab=32000,
        sizes=Sizes(hidden=4096, intermediate=12288),
        target_layers=36,
    ),
    Recipe(
        name="AngelSlim/Qwen3-1.7B_eagle3",
        exporter=replace(_ANGELSLIM, architectures=("Eagle3LlamaForCausalLM",)),
        vocab=151936,
        draft_vocab=32000,
        sizes=Sizes(hidden=2048, intermediate=6144, heads=16),
        target_layers=28,
        keys={"tie_word_embeddings": True},
    ),
    Recipe(
        name="AngelSlim/Qwen3-32B_eagle3",
        exporter=_ANGELSLIM,
        vocab=151936,
        draft_vocab=32000,
        sizes=Sizes(hidden=5120, intermediate=25600, heads=64, head_dim=80),
        target_layers=64,
    ),
    Recipe(
        # Counts the target's layers.
        name="AngelSlim qwen2.5-7b",
        exporter=_ANGELSLIM,
        vocab=152064,
        draft_vocab=32000,
        sizes=Sizes(hidden=3584, intermediate=18944, heads=28, kv_heads=4),
        target_layers=28,
        keys={"num_hidden_layers": 28},
        refused=r"num_hidden_layers is 28 .*holds 1\b.*Set num_hidden_layers to 1",
    ),
    Recipe(
        name="AngelSlim, a full vocabulary with a mask of nothing",
        exporter=_ANGELSLIM,
        vocab=151936,
        draft_vocab=151936,
        sizes=Sizes(hidden=2048, intermediate=6144, heads=16),
        target_layers=28,
        t2d_value=False,
    ),
)

# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""Kimi and DeepSeek drafts with multi-head latent attention."""

from dataclasses import replace

from ..recipe import DEEPSEEK_YARN, Exporter, Recipe, Sizes

_KIMI = Exporter(
    architectures=("Eagle3DeepseekV2ForCausalLM",),
    model_type="kimi_k2",
    layer="layers.0",
    d2t="never",
    t2d="never",
    keys={
        "rope_theta": 50_000.0,
        "rope_scaling": DEEPSEEK_YARN,
        "eagle_config": {
            "eagle_aux_hidden_state_layer_ids": [2, 30, 58],
            "use_aux_hidden_state": True,
        },
    },
)
_LIGHTSEEK = replace(_KIMI, embed=True)
_SIZES = Sizes(hidden=7168, intermediate=18432, heads=64, kv_heads=64)

LATENT_DRAFTS = (
    Recipe(
        # Declared full, and no head (SGLang issue #27829).
        name="nvidia/Kimi-K2.6-Eagle3, first revision",
        exporter=replace(_KIMI, head=False),
        family="deepseek",
        vocab=163840,
        draft_vocab=163840,
        sizes=_SIZES,
    ),
    Recipe(
        # ModelOpt's Kimi template has no draft_vocab_size.
        name="nvidia/Kimi-K2.5-Thinking-Eagle3",
        exporter=_KIMI,
        family="deepseek",
        vocab=163840,
        draft_vocab=...,
        sizes=_SIZES,
    ),
    Recipe(
        name="k-l-lambda/Kimi-K2.5-Eagle3",
        exporter=_LIGHTSEEK,
        family="deepseek",
        vocab=163840,
        draft_vocab=163840,
        sizes=_SIZES,
    ),
    Recipe(
        name="lightseekorg/kimi-k2.7-coder-eagle3.1-mla",
        exporter=_LIGHTSEEK,
        family="deepseek",
        vocab=163840,
        draft_vocab=163840,
        sizes=_SIZES,
        further=("fc_norm",),
        keys={"fc_norm": True, "norm_output": True},
    ),
    Recipe(
        name="SpecForge, a reduced draft with latent attention",
        exporter=replace(
            _KIMI,
            architectures=("DeepseekV3ForCausalLMEagle3",),
            model_type="deepseek_v3",
            layer="midlayer",
            d2t="always",
            t2d="always",
        ),
        family="deepseek",
        vocab=129280,
        draft_vocab=32000,
        sizes=_SIZES,
    ),
)

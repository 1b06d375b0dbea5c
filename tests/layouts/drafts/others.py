# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""Amazon's P-EAGLE, NeMo Automodel, EAGLE-3.1 heads, and drafts of single users."""

from dataclasses import replace

import torch

from ..recipe import Exporter, Recipe, Sizes

_LLAMA = Exporter(architectures=("LlamaForCausalLMEagle3",))
_BOTH = replace(_LLAMA, d2t="always", t2d="always")
_AMAZON = replace(_BOTH, embed=True)
_AUTOMODEL = Exporter(
    architectures=("LlamaEagle3DraftModel",),
    layer="layers.0",
    prefix="model.",
    embed=True,
    keys={"num_aux_hidden_states": 3},
)
_LIGHTSEEK = replace(
    _LLAMA, embed=True, d2t="never", t2d="never", files="shards", layer="layers.0"
)
_GPT_OSS = Sizes(hidden=2880, intermediate=17280, heads=64, head_dim=64)
_KIMI = Sizes(hidden=7168, intermediate=12288, heads=64, kv_heads=64)
_QWEN_27B = Sizes(hidden=5120, intermediate=16384, heads=40, kv_heads=40)
_LLAMA_8B = Sizes(hidden=4096, intermediate=14336)

OTHERS = (
    Recipe(
        # midlayer and layers.1 to 3, a map of identity, a mask token under its own key.
        name="amazon/gpt-oss-20b-p-eagle",
        exporter=_AMAZON,
        vocab=201088,
        draft_vocab=201088,
        sizes=_GPT_OSS,
        target_layers=24,
        layers=4,
        further=("mask_hidden",),
        keys={
            "ptd_token_id": 201020,
            "rope_theta": 150_000.0,
            "rope_scaling": {
                "factor": 32.0,
                "high_freq_factor": 4.0,
                "low_freq_factor": 1.0,
                "original_max_position_embeddings": 8192,
                "rope_type": "llama3",
            },
        },
    ),
    Recipe(
        name="NeMo Automodel",
        exporter=_AUTOMODEL,
        vocab=128256,
        draft_vocab=32000,
        sizes=_LLAMA_8B,
    ),
    Recipe(
        # Ids stood in a file beside the model until its PR #2447.
        name="NeMo Automodel, before it saved d2t",
        exporter=replace(_AUTOMODEL, d2t="never", t2d="never"),
        vocab=128256,
        draft_vocab=32000,
        sizes=_LLAMA_8B,
        refused=r"d2t is missing: draft_vocab_size is 32000, .*128256",
    ),
    Recipe(
        name="nebius/EAGLE3-gpt-oss-20b",
        exporter=replace(_BOTH, architectures=("LlamaForCausalLM",)),
        vocab=201088,
        draft_vocab=64000,
        sizes=Sizes(hidden=2880, intermediate=11520, heads=64, head_dim=64),
        target_layers=24,
        keys={
            "truncated_vocab_size": 64000,
            "rope_theta": 150_000,
            "rope_scaling": {
                "beta_fast": 32.0,
                "beta_slow": 1.0,
                "factor": 32.0,
                "original_max_position_embeddings": 4096,
                "rope_type": "yarn",
            },
        },
    ),
    Recipe(
        name="lightseekorg/kimi-k2.5-eagle3",
        exporter=_LIGHTSEEK,
        vocab=163840,
        draft_vocab=163840,
        sizes=_KIMI,
        target_layers=61,
    ),
    Recipe(
        name="LumenRL Kimi, biases of attention",
        exporter=replace(_LIGHTSEEK, files="safetensors"),
        vocab=163840,
        draft_vocab=163840,
        sizes=_KIMI,
        target_layers=61,
        further=("qkv_bias", "o_bias"),
        keys={"attention_bias": True},
    ),
    Recipe(
        name="asherszhang/MiniMax-M2.7-EAGLE3-draft-vocab32k",
        exporter=_BOTH,
        vocab=200064,
        draft_vocab=32000,
        sizes=Sizes(hidden=3072, intermediate=8192, heads=48),
        target_layers=62,
    ),
    Recipe(
        name="Lorbus/MiniMax-M2.7-EAGLE3",
        exporter=replace(_BOTH, architectures=("Eagle3MiniMaxM2ForCausalLM",)),
        vocab=200064,
        draft_vocab=32000,
        sizes=Sizes(hidden=3072, intermediate=8192, heads=48),
        target_layers=62,
        keys={"eagle_config": {"eagle_aux_hidden_state_layer_ids": [2, 31, 59]}},
    ),
    Recipe(
        # 28 heads of 128 over a hidden size of 2048; [16, 24, 24] of a head of 128.
        name="baseten q-r-e, before a Qwen2.5-VL-3B",
        exporter=replace(_BOTH, architectures=("Eagle3Qwen2_5vlForCausalLM",)),
        vocab=151936,
        draft_vocab=32000,
        sizes=Sizes(hidden=2048, intermediate=11008, heads=28, kv_heads=4),
        target_layers=36,
        keys={
            "rope_theta": 1_000_000.0,
            "rope_scaling": {"mrope_section": [4, 6, 6], "type": "mrope"},
        },
    ),
    Recipe(
        name="Ex0bit/Qwen3.6-27B-PRISM-EAGLE3, full",
        exporter=_LLAMA,
        vocab=248320,
        draft_vocab=248320,
        sizes=_QWEN_27B,
    ),
    Recipe(
        name="Ex0bit/Qwen3.6-27B-PRISM-EAGLE3, compressed",
        exporter=replace(_LLAMA, d2t="always"),
        vocab=248320,
        draft_vocab=32768,
        sizes=_QWEN_27B,
    ),
    Recipe(
        name="BLR2/Qwen3.5-9B-Eagle3-ShareGPT",
        exporter=_BOTH,
        vocab=248320,
        draft_vocab=32000,
        sizes=Sizes(hidden=4096, intermediate=12288),
        target_layers=32,
        keys={"rope_theta": None},
    ),
    Recipe(
        # A name that no vLLM knows, over an ordinary Llama draft.
        name="eagle-harness Qwen3.8-27B",
        exporter=replace(_LLAMA, architectures=("LlamaForCausalLMEagle4",)),
        vocab=248320,
        draft_vocab=248320,
        sizes=_QWEN_27B,
        further=("fc_norm",),
        keys={
            "eagle_aux_hidden_state_layer_ids": [3, 31, 59],
            "fc_norm": True,
            "norm_output": True,
            "rope_parameters": {"rope_type": "default", "rope_theta": 10_000_000},
            "sliding_window": 4096,
        },
    ),
    Recipe(
        name="zjxia/step-3.5-flash-eagle3",
        exporter=_BOTH,
        vocab=128896,
        draft_vocab=32000,
        sizes=Sizes(hidden=4096, intermediate=11264, heads=64, head_dim=64),
        target_layers=45,
        keys={"eagle_config": {"eagle_aux_hidden_state_layer_ids": [4, 20, 40]}},
    ),
    Recipe(
        name="linglingdan/eagle3_for_MiniCPM4",
        exporter=_BOTH,
        vocab=73448,
        draft_vocab=15000,
        sizes=Sizes(hidden=4096, intermediate=16384, kv_heads=2),
        target_layers=32,
    ),
    Recipe(
        name="AvitoTech/avibe-eagle",
        exporter=_BOTH,
        vocab=116394,
        draft_vocab=32000,
        sizes=_LLAMA_8B,
        target_layers=36,
        keys={"num_hidden_layers": 36},
        refused=r"num_hidden_layers is 36 .*holds 1\b.*Set num_hidden_layers to 1",
    ),
    Recipe(
        name="Ichigec/a1-agents-eagle3-speculator",
        exporter=_BOTH,
        vocab=248320,
        draft_vocab=8192,
        sizes=Sizes(hidden=2048, intermediate=6144, heads=16),
        target_layers=40,
        keys={"eagle_aux_hidden_state_layer_ids": [3, 19, 39]},
    ),
    Recipe(
        name="mahmoudhas9/tiny-eagle3",
        exporter=replace(_BOTH, dtype=torch.float32),
        vocab=151936,
        draft_vocab=32000,
        sizes=Sizes(hidden=40, intermediate=64, heads=2, kv_heads=1, head_dim=20),
    ),
    Recipe(
        # Listed by a user: no fc, no head, no map (EAGLE issue #265).
        name="Tengyunw/qwen3_30b_moe_eagle3",
        exporter=replace(_LLAMA, head=False, d2t="never", t2d="never", embed=True),
        vocab=151936,
        draft_vocab=32000,
        sizes=Sizes(hidden=2048, intermediate=6144, kv_heads=4),
        target_layers=48,
        aux=0,
        refused=r"lm_head\.weight is missing: draft_vocab_size is 32000",
    ),
)

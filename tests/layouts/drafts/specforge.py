# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""SpecForge (github.com/sgl-project/SpecForge, `configs/` and `export/`).

`midlayer.*`, own head, never embeddings, always both of the map's tensors: zeros and
ones for a full vocabulary. Configs are those of its repository.
"""

from dataclasses import replace

from ..recipe import Exporter, Recipe, Sizes

_SPECFORGE = Exporter(
    architectures=("LlamaForCausalLMEagle3",), d2t="always", t2d="always"
)
_LLAMA3_ROPE = {
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 8192,
    "rope_type": "llama3",
}
_YARN = {
    "beta_fast": 32.0,
    "beta_slow": 1.0,
    "factor": 32.0,
    "original_max_position_embeddings": 4096,
    "rope_type": "yarn",
    "truncate": False,
}
_GPT_OSS = Sizes(hidden=2880, intermediate=17280, heads=64, head_dim=64)
_QWEN3_30B = Sizes(hidden=2048, intermediate=12288, kv_heads=4)
_KIMI_K2 = Sizes(hidden=7168, intermediate=18432, heads=64, kv_heads=64)


def _aux(*ids: int, **further: object) -> dict[str, object]:
    return {
        "eagle_config": {
            "eagle_aux_hidden_state_layer_ids": list(ids),
            "use_aux_hidden_state": True,
            **further,
        }
    }


SPECFORGE = (
    Recipe(
        name="lmsys/Qwen3-235B-A22B-EAGLE3",
        exporter=_SPECFORGE,
        vocab=151936,
        draft_vocab=32000,
        sizes=Sizes(hidden=4096, intermediate=24576, heads=64, kv_heads=4),
        target_layers=94,
        keys={"rope_theta": 1_000_000, "attention_bias": False, **_aux(1, 46, 90)},
    ),
    Recipe(
        name="SpecForge llama4-scout",
        exporter=_SPECFORGE,
        vocab=202048,
        draft_vocab=32000,
        sizes=Sizes(hidden=5120, intermediate=32768, heads=40),
        target_layers=48,
        keys={"rope_theta": 500_000.0, "rope_scaling": _LLAMA3_ROPE},
    ),
    Recipe(
        # Another architecture's name over the Llama layout.
        name="SpecForge gpt-oss-20B",
        exporter=replace(_SPECFORGE, architectures=("GptOssForCausalLMEagle3",)),
        vocab=201088,
        draft_vocab=32000,
        sizes=_GPT_OSS,
        target_layers=24,
        keys={"rope_theta": 150_000, "rope_scaling": _YARN, **_aux(1, 11, 21)},
    ),
    Recipe(
        name="SpecForge gpt-oss-120B",
        exporter=_SPECFORGE,
        vocab=201088,
        draft_vocab=32000,
        sizes=_GPT_OSS,
        target_layers=36,
        keys={"rope_theta": 150_000, "rope_scaling": _YARN, **_aux(1, 17, 33)},
    ),
    Recipe(
        name="SpecForge deepseek-v3-671b",
        exporter=_SPECFORGE,
        vocab=129280,
        draft_vocab=32000,
        sizes=Sizes(hidden=7168, intermediate=40960, heads=56),
        target_layers=61,
        keys=_aux(1, 29, 57),
    ),
    Recipe(
        name="SpecForge kimi-k2, and AQ-MedAI/Kimi-K2-Instruct-eagle3",
        exporter=replace(_SPECFORGE, model_type="kimi_k2"),
        vocab=163840,
        draft_vocab=32000,
        sizes=_KIMI_K2,
        target_layers=61,
        keys={"rope_theta": 1_000_000.0, **_aux(2, 30, 58)},
    ),
    Recipe(
        name="SpecForge longcat-flash",
        exporter=_SPECFORGE,
        vocab=131072,
        draft_vocab=131072,
        sizes=Sizes(hidden=6144, intermediate=12288, heads=48),
        target_layers=56,
    ),
    Recipe(
        name="SpecForge gemma3-27b",
        exporter=_SPECFORGE,
        vocab=262208,
        draft_vocab=262208,
        sizes=Sizes(hidden=5376, intermediate=21504, kv_heads=16),
        target_layers=62,
        keys={"reuse_target_lm_head": True},
    ),
    Recipe(
        # One id more than its target.
        name="SpecForge gemma3-1b",
        exporter=_SPECFORGE,
        vocab=262145,
        draft_vocab=32000,
        target_vocab=262144,
        sizes=Sizes(hidden=1152, intermediate=6912, heads=4, kv_heads=1, head_dim=256),
        target_layers=26,
    ),
    Recipe(
        name="SpecForge phi4",
        exporter=replace(_SPECFORGE, model_type="phi3"),
        vocab=100352,
        draft_vocab=32000,
        sizes=Sizes(hidden=5120, intermediate=17920, heads=40, kv_heads=10),
        target_layers=40,
        keys={"rope_theta": 250_000},
    ),
    Recipe(
        name="SpecForge qwen3-vl-30b-a3b",
        exporter=_SPECFORGE,
        vocab=151936,
        draft_vocab=32000,
        sizes=_QWEN3_30B,
        target_layers=48,
        keys={
            "target_model_type": "qwen3_vl_moe",
            "rope_theta": 5_000_000,
            # [24, 20, 20] of a head of 128.
            "rope_scaling": {"mrope_interleaved": True, "mrope_section": [6, 5, 5]},
        },
    ),
    Recipe(
        name="SpecForge qwen3-8b-peagle, and thyways/qwen3_8b_peagle_demo",
        exporter=replace(
            _SPECFORGE, architectures=("PEagleDraftModel",), layer="layers.0"
        ),
        vocab=151936,
        draft_vocab=151936,
        sizes=Sizes(hidden=4096, intermediate=12288),
        target_layers=36,
        layers=4,
        further=("mask_hidden",),
        keys={"rope_theta": 1_000_000, "mask_token_id": 151643},
    ),
    Recipe(
        # No use_aux_hidden_state in its eagle_config; 32 heads of 128 over 2816.
        name="SpecForge gemma4-26b-a4b",
        exporter=_SPECFORGE,
        vocab=262144,
        draft_vocab=262144,
        sizes=Sizes(hidden=2816, intermediate=2112),
        target_layers=30,
        keys={"eagle_config": {"eagle_aux_hidden_state_layer_ids": [5, 17, 29]}},
    ),
    Recipe(
        name="SpecForge qwen3-30B-A3B EAGLE-3.1",
        exporter=_SPECFORGE,
        vocab=151936,
        draft_vocab=32000,
        sizes=_QWEN3_30B,
        target_layers=48,
        further=("fc_norm",),
        keys={
            "fc_norm": True,
            "norm_output": True,
            "rope_scaling": None,
            "rope_theta": 1_000_000,
        },
    ),
    Recipe(
        name="SpecForge mistral-small-24B",
        exporter=_SPECFORGE,
        vocab=131072,
        draft_vocab=32000,
        sizes=Sizes(hidden=5120, intermediate=32768),
        target_layers=40,
        keys={"rope_theta": 100_000_000.0},
    ),
    Recipe(
        name="SpecForge qwen3-4b, tied before its pull request #140",
        exporter=_SPECFORGE,
        vocab=151936,
        draft_vocab=32000,
        sizes=Sizes(hidden=2560, intermediate=9728),
        target_layers=36,
        keys={"tie_word_embeddings": True, "rope_theta": 1_000_000},
    ),
    Recipe(
        name="lukeysong/llama3-draft",
        exporter=_SPECFORGE,
        vocab=128256,
        draft_vocab=128256,
        sizes=Sizes(hidden=4096, intermediate=14336),
        target_layers=32,
    ),
)

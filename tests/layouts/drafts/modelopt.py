# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""NVIDIA ModelOpt (`modelopt.torch.export`), Llama template; Kimi is in `latent.py`.

`layers.0.*`, never embeddings, `d2t` only where the vocabulary is reduced, never
`t2d`. Keys are present and may be null.
"""

from dataclasses import replace

from ..recipe import Exporter, Recipe, Sizes


def _eagle(ids: list[int] | None, **further: object) -> dict[str, object]:
    return {
        "eagle_config": {
            "eagle_aux_hidden_state_layer_ids": ids,
            "use_aux_hidden_state": True,
            "use_input_layernorm_in_first_layer": True,
            "use_last_layernorm": True,
            "use_mtp_layernorm": False,
            "next_layer_regular": True,
            "parallel_draft_step": 1,
            "parallel_draft_heads_num_layers": None,
            **further,
        }
    }


_MODELOPT = Exporter(
    architectures=("LlamaForCausalLMEagle3",),
    layer="layers.0",
    t2d="never",
    keys={
        "attention_bias": False,
        "mlp_bias": False,
        "rope_scaling": None,
        "rope_theta": 500_000.0,
        **_eagle(None),
    },
)
_OLD = replace(_MODELOPT, architectures=("LlamaForCausalLM",))
_HEADLESS = replace(_MODELOPT, head=False)
_GPT_OSS = Sizes(hidden=2880, intermediate=17280, heads=64, head_dim=64)
_MAVERICK = Sizes(hidden=5120, intermediate=32768, heads=40)

MODELOPT = (
    Recipe(
        # draft_vocab_size null, and no head (SGLang PR #9739).
        name="nvidia/gpt-oss-120b-Eagle3",
        exporter=_HEADLESS,
        vocab=201088,
        draft_vocab=None,
        sizes=_GPT_OSS,
        target_layers=36,
        keys=_eagle([1, 17, 33]),
    ),
    Recipe(
        # norm_before_fc inside eagle_config, and the final layer among the ids.
        name="nvidia/gpt-oss-120b-Eagle3-v3",
        exporter=_MODELOPT,
        vocab=201088,
        draft_vocab=201088,
        sizes=_GPT_OSS,
        target_layers=36,
        further=("input_norm",),
        keys=_eagle([24, 30, 36], norm_before_fc=True),
    ),
    Recipe(
        name="nvidia/gpt-oss-120b-Eagle3-long-context",
        exporter=_MODELOPT,
        vocab=201088,
        draft_vocab=201088,
        sizes=_GPT_OSS,
        target_layers=36,
        keys=_eagle([1, 17, 32]),
    ),
    Recipe(
        name="nvidia/gpt-oss-120b-Eagle3-short-context",
        exporter=_MODELOPT,
        vocab=201088,
        draft_vocab=201088,
        sizes=_GPT_OSS,
        target_layers=36,
        aux=0,
        keys=_eagle([], use_aux_hidden_state=False),
    ),
    Recipe(
        name="nvidia/Qwen3-30B-A3B-Thinking-2507-Eagle3",
        exporter=_MODELOPT,
        vocab=151936,
        draft_vocab=151936,
        sizes=Sizes(hidden=2048, intermediate=6144, kv_heads=4),
        target_layers=48,
        keys=_eagle([1, 23, 44]),
    ),
    Recipe(
        # A quantisation config that names no method (SGLang PR #11991).
        name="nvidia/Qwen3-235B-A22B-Eagle3",
        exporter=_OLD,
        vocab=151936,
        draft_vocab=32000,
        sizes=Sizes(hidden=4096, intermediate=24576, heads=64, kv_heads=4),
        target_layers=94,
        keys={"quantization_config": {}, **_eagle([1, 46, 90])},
    ),
    Recipe(
        # No layer ids anywhere (vLLM PR #50170).
        name="nvidia/Llama-3.3-70B-Instruct-Eagle3",
        exporter=replace(_MODELOPT, keys={**_MODELOPT.keys, "eagle_config": ...}),
        vocab=128256,
        draft_vocab=32000,
        sizes=Sizes(hidden=8192, intermediate=28672, heads=64),
        target_layers=80,
    ),
    Recipe(
        name="nvidia/Llama-4-Maverick-17B-128E-Eagle3",
        exporter=_OLD,
        vocab=202048,
        draft_vocab=202048,
        sizes=_MAVERICK,
        target_layers=48,
        keys={"quantization_config": None},
    ),
    Recipe(
        name="TensorRT-LLM issue #6158",
        exporter=_OLD,
        vocab=128256,
        draft_vocab=32000,
        sizes=Sizes(hidden=4096, intermediate=14336),
        target_layers=32,
        keys={
            "rope_scaling": {
                "factor": 8.0,
                "high_freq_factor": 4.0,
                "low_freq_factor": 1.0,
                "original_max_position_embeddings": 8192,
                "rope_type": "llama3",
            }
        },
    ),
)

# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""vLLM's speculators library (github.com/vllm-project/speculators).

The layer's config is nested and saved as a difference to its defaults; embeddings and
head are saved, the map's tensors only where the vocabulary is reduced.
"""

from dataclasses import replace

import torch

from ..recipe import Exporter, Recipe, Sizes

_SPECULATORS = Exporter(
    architectures=("Eagle3DraftModel",),
    form="eagle3",
    layer="layers.0",
    embed=True,
    keys={
        "speculators_version": "0.9.0",
        "auto_map": {"": "eagle3.Eagle3DraftModel"},
        "eagle_aux_hidden_state_layer_ids": None,
        "target_hidden_size": None,
        "norm_before_residual": True,
        "speculators_config": {
            "algorithm": "eagle3",
            "default_proposal_method": "greedy",
            "proposal_methods": [{"proposal_type": "greedy", "speculative_tokens": 3}],
            "verifier": {"name_or_path": "/models/verifier", "architectures": []},
        },
    },
)
_OLD = replace(_SPECULATORS, architectures=("Eagle3Speculator",))
_LLAMA_8B = Sizes(hidden=4096, intermediate=14336)
_QWEN3_30B = Sizes(hidden=2048, intermediate=6144, kv_heads=4)
_GPT_OSS = Sizes(hidden=2880, intermediate=17280, heads=64, head_dim=64)

SPECULATORS = (
    Recipe(
        name="RedHatAI/Llama-3.1-8B-Instruct-speculator.eagle3",
        exporter=_OLD,
        vocab=128256,
        draft_vocab=32000,
        sizes=_LLAMA_8B,
        target_layers=32,
    ),
    Recipe(
        # norm_before_residual is left out, and then true.
        name="nm-testing/SpeculatorLlama3-1-8B-Eagle3",
        exporter=replace(_OLD, dtype=torch.float32),
        vocab=128256,
        draft_vocab=32000,
        sizes=_LLAMA_8B,
        target_layers=32,
        keys={"norm_before_residual": ...},
    ),
    Recipe(
        name="RedHatAI/Qwen3-30B-A3B-speculator.eagle3",
        exporter=_SPECULATORS,
        vocab=151936,
        draft_vocab=64000,
        sizes=_QWEN3_30B,
        target_layers=48,
        keys={"transformer_layer_config": {"rope_theta": 10_000.0}},
    ),
    Recipe(
        name="RedHatAI/gpt-oss-20b-speculator.eagle3",
        exporter=_SPECULATORS,
        vocab=201088,
        draft_vocab=64000,
        sizes=_GPT_OSS,
        target_layers=24,
        further=("input_norm",),
        keys={"norm_before_fc": True},
    ),
    Recipe(
        name="RedHatAI/Qwen3-8B-speculator.eagle3, full vocabulary",
        exporter=_SPECULATORS,
        vocab=151936,
        draft_vocab=151936,
        sizes=Sizes(hidden=4096, intermediate=12288),
        target_layers=36,
    ),
    Recipe(
        name="RedHatAI/Qwen3-8B-speculator.eagle3, reduced vocabulary",
        exporter=_SPECULATORS,
        vocab=151936,
        draft_vocab=32000,
        sizes=Sizes(hidden=4096, intermediate=12288),
        target_layers=36,
    ),
    Recipe(
        name="RedHatAI/Llama-4-Maverick speculator",
        exporter=_SPECULATORS,
        vocab=202048,
        draft_vocab=202048,
        sizes=Sizes(hidden=5120, intermediate=32768, heads=40),
        target_layers=48,
        keys={"eagle_aux_hidden_state_layer_ids": [1, 23, 44]},
    ),
    Recipe(
        name="RedHatAI/Qwen3-8B-speculator.peagle",
        exporter=replace(
            _SPECULATORS,
            architectures=("PEagleSpeculator",),
            form="peagle",
            keys={**_SPECULATORS.keys, "norm_before_residual": ...},
        ),
        vocab=151936,
        draft_vocab=32000,
        sizes=Sizes(hidden=4096, intermediate=12288),
        target_layers=36,
        layers=4,
        aux=5,
        further=("mask_hidden",),
        keys={
            "eagle_aux_hidden_state_layer_ids": [2, 10, 18, 26, 34],
            "mask_token_id": 151643,
        },
    ),
    Recipe(
        # Built with three auxiliary states (vLLM issue #54526).
        name="speculators 0.8.0, four auxiliary states before a Qwen3-MoE",
        exporter=_SPECULATORS,
        vocab=151936,
        draft_vocab=32000,
        sizes=Sizes(hidden=4096, intermediate=12288, heads=64, kv_heads=4),
        target_layers=94,
        aux=4,
        further=("input_norm",),
        keys={
            "eagle_aux_hidden_state_layer_ids": [2, 46, 91, 93],
            "norm_before_fc": True,
            "norm_output": True,
        },
    ),
    Recipe(
        name="speculators, a Qwen3 layer with head norms",
        exporter=replace(_SPECULATORS, model_type="qwen3"),
        family="qwen3",
        vocab=151936,
        draft_vocab=32000,
        sizes=Sizes(hidden=4096, intermediate=12288),
        target_layers=36,
        aux=4,
        further=("fc_norm",),
        keys={
            "eagle_aux_hidden_state_layer_ids": [2, 10, 18, 34],
            "fc_norm": True,
            "norm_output": True,
            "transformer_layer_config": {
                "rope_parameters": {"rope_type": "default", "rope_theta": 1_000_000}
            },
        },
    ),
    Recipe(
        name="nm-testing/for_testing_gptoss20b_spec_eagle3",
        exporter=_SPECULATORS,
        vocab=201088,
        draft_vocab=32000,
        sizes=_GPT_OSS,
        target_layers=24,
    ),
    Recipe(
        name="inference-optimization/Mistral3_speculator_dummy",
        exporter=replace(_SPECULATORS, dtype=torch.float32),
        vocab=131072,
        draft_vocab=32000,
        sizes=Sizes(hidden=7168, intermediate=16384, head_dim=192),
        target_layers=61,
    ),
    Recipe(
        name="nm-testing/random-weights-llama3.1.8b-2layer-eagle3",
        exporter=_SPECULATORS,
        vocab=128256,
        draft_vocab=32000,
        sizes=_LLAMA_8B,
        target_layers=32,
        layers=2,
    ),
)

# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""Which exporter is recognised by which traces (as published drafts have them)."""

import pytest

from vllm_eagle3.check.exporters import UNKNOWN, recognise

ONE_FILE = ("config.json", "model.safetensors")
MIDLAYER = ("midlayer.self_attn.q_proj.weight", "fc.weight", "lm_head.weight")
MAPS = ("d2t", "t2d")


@pytest.mark.parametrize(
    "config, names, files, exporter",
    [
        (
            {"speculators_model_type": "eagle3"},
            ("layers.0.self_attn.q_proj.weight", "embed_tokens.weight", *MAPS),
            ONE_FILE,
            "vLLM speculators",
        ),
        (
            {"architectures": ["LlamaForCausalLM"]},
            (*MIDLAYER, *MAPS),
            ("config.json", "pytorch_model.bin"),
            "SafeAILab EAGLE",
        ),
        (
            {"architectures": ["LlamaForCausalLMEagle3"]},
            (*MIDLAYER, *MAPS),
            ONE_FILE,
            "SpecForge (or AngelSlim)",
        ),
        (
            {"architectures": ["PEagleDraftModel"]},
            ("layers.0.self_attn.q_proj.weight", "mask_hidden", *MAPS),
            ONE_FILE,
            "SpecForge (or AngelSlim)",
        ),
        (
            {"architectures": ["Eagle3LlamaForCausalLM"]},
            (*MIDLAYER, *MAPS),
            ONE_FILE,
            "Tencent AngelSlim",
        ),
        (
            {
                "architectures": ["LlamaForCausalLMEagle3"],
                "eagle_config": {"use_input_layernorm_in_first_layer": None},
            },
            ("layers.0.self_attn.q_proj.weight", "d2t"),
            ONE_FILE,
            "NVIDIA ModelOpt",
        ),
        (
            {},
            ("layers.0.self_attn.q_proj.weight",),
            (*ONE_FILE, "hf_quant_config.json"),
            "NVIDIA ModelOpt",
        ),
        (
            {"architectures": ["LlamaEagle3DraftModel"]},
            ("model.fc.weight",),
            ONE_FILE,
            "NVIDIA NeMo Automodel",
        ),
        (
            {"architectures": ["LlamaForCausalLMEagle3"], "ptd_token_id": 201020},
            (*MIDLAYER, "layers.1.mlp.up_proj.weight", "mask_hidden", *MAPS),
            ONE_FILE,
            "amazon P-EAGLE",
        ),
        (
            {"architectures": ["Eagle3DeepseekV2ForCausalLM"]},
            ("layers.0.self_attn.kv_a_proj_with_mqa.weight",),
            ONE_FILE,
            "MLA draft, as lightseek's and NVIDIA's for Kimi",
        ),
        ({}, ("layers.0.self_attn.q_proj.weight",), ONE_FILE, UNKNOWN.name),
        ({"eagle_config": None, "architectures": None}, (), (), UNKNOWN.name),
    ],
)
def test_an_exporter_is_recognised(config, names, files, exporter):
    assert recognise(config, names, files).name == exporter

# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""SafeAILab's EAGLE (github.com/SafeAILab/EAGLE, `eagle/traineagle3`).

`pytorch_model.bin` in float16, `midlayer.*`, and always both of the map's tensors:
zeros for a full vocabulary (issue #222 there). No rope keys, no head_dim.
"""

import torch

from ..recipe import Exporter, Recipe, Sizes

_EAGLE = Exporter(
    architectures=("LlamaForCausalLM",),
    d2t="always",
    t2d="always",
    dtype=torch.float16,
    files="bin",
    keys={"head_dim": ...},
)
_LLAMA_8B = Sizes(hidden=4096, intermediate=14336)

SAFEAILAB = (
    Recipe(
        name="yuhuili/EAGLE3-LLaMA3.1-Instruct-8B",
        exporter=_EAGLE,
        vocab=128256,
        draft_vocab=32000,
        sizes=_LLAMA_8B,
    ),
    Recipe(
        name="yuhuili/EAGLE3-Vicuna1.3-13B",
        exporter=_EAGLE,
        vocab=32000,
        draft_vocab=32000,
        sizes=Sizes(hidden=5120, intermediate=13824, heads=40, kv_heads=40),
        # Of the target, with one layer in the file (BaldEagle issue #6).
        keys={"num_hidden_layers": 40},
        refused=r"num_hidden_layers is 40 .*holds 1\b.*Set num_hidden_layers to 1",
    ),
    Recipe(
        name="yuhuili/EAGLE3-Vicuna1.3-13B, its layers counted right",
        exporter=_EAGLE,
        vocab=32000,
        draft_vocab=32000,
        sizes=Sizes(hidden=5120, intermediate=13824, heads=40, kv_heads=40),
    ),
    Recipe(
        # Narrower than its target, so with embeddings of its own (vLLM issue #19174).
        name="yuhuili/EAGLE3-LLaMA3.3-Instruct-70B",
        exporter=Exporter(
            architectures=("LlamaForCausalLM",),
            embed=True,
            d2t="always",
            t2d="always",
            dtype=torch.float16,
            files="bin",
            keys={"head_dim": ...},
        ),
        vocab=128256,
        draft_vocab=32000,
        sizes=Sizes(hidden=6144, intermediate=16384, heads=48, target_hidden=8192),
        target_layers=80,
    ),
)

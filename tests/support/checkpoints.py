# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""Tiny targets and drafts on disk, in the layouts that exporters write.

Shapes come from the EAGLE-3 paper and from published checkpoints, not from the models
under test: `T = 1024` target ids, hidden size 128, 8 target layers; a draft of one
layer with 4 heads (2 for keys and values) of 32, and `fc` over three auxiliary states.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file

TARGET_VOCAB = 1024
HIDDEN = 128
INTERMEDIATE = 256
TARGET_LAYERS = 8
FAMILIES = ("llama", "qwen3", "deepseek")

_HEADS = {
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 32,
    "hidden_act": "silu",
    "rms_norm_eps": 1e-6,
    "hidden_size": HIDDEN,
    "intermediate_size": INTERMEDIATE,
    "max_position_embeddings": 2048,
    "tie_word_embeddings": False,
    "torch_dtype": "float32",
}
# The dimensions that vLLM's CPU kernel for latent attention takes.
_MLA = {
    "num_key_value_heads": 4,
    "q_lora_rank": 64,
    "kv_lora_rank": 512,
    "qk_nope_head_dim": 128,
    "qk_rope_head_dim": 64,
    "v_head_dim": 128,
    "first_k_dense_replace": TARGET_LAYERS,
}
_ARCHITECTURES = {
    "llama": "LlamaForCausalLMEagle3",
    "qwen3": "Eagle3Qwen3ForCausalLM",
    "deepseek": "Eagle3DeepseekV2ForCausalLM",
}
_MODEL_TYPES = {"llama": "llama", "qwen3": "qwen3", "deepseek": "deepseek_v2"}


def target_config(**changes: Any) -> dict[str, Any]:
    """A Llama target; a draft of any family can stand before it."""
    return _HEADS | {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "vocab_size": TARGET_VOCAB,
        "num_hidden_layers": TARGET_LAYERS,
        **changes,
    }


def draft_config(family: str, **changes: Any) -> dict[str, Any]:
    """A one-layer draft's config; a change to `...` removes the key."""
    config = _HEADS | {
        "architectures": [_ARCHITECTURES[family]],
        "model_type": _MODEL_TYPES[family],
        "vocab_size": TARGET_VOCAB,
        "draft_vocab_size": TARGET_VOCAB,
        "num_hidden_layers": 1,
    }
    if family == "deepseek":
        config = {k: v for k, v in config.items() if k != "head_dim"} | _MLA
    config |= changes
    return {key: value for key, value in config.items() if value is not ...}


@dataclass(frozen=True)
class DraftShape:
    """What a draft's tensors are made from."""

    family: str = "llama"
    draft_vocab: int = TARGET_VOCAB
    layers: int = 1
    aux: int = 3
    hidden: int = HIDDEN
    target_hidden: int = HIDDEN
    head: bool = True


def draft_tensors(shape: DraftShape, seed: int = 0) -> dict[str, torch.Tensor]:
    """Random float32 tensors under `midlayer.*`, `layers.1.*`, ... `fc`, `norm`."""
    generator = torch.Generator().manual_seed(seed)

    def normal(*size: int) -> torch.Tensor:
        return torch.randn(*size, generator=generator) * 0.05

    hidden = shape.hidden
    tensors = {
        "fc.weight": normal(hidden, shape.aux * shape.target_hidden),
        "norm.weight": 1 + normal(hidden),
    }
    if shape.head:
        tensors["lm_head.weight"] = normal(shape.draft_vocab, hidden)
    for index in range(shape.layers):
        layer = "midlayer" if index == 0 else f"layers.{index}"
        features = 2 * hidden if index == 0 else hidden
        sizes = _layer_sizes(shape.family, hidden, features)
        if index == 0:
            sizes["hidden_norm.weight"] = (hidden,)
        for name, size in sizes.items():
            value = normal(*size)
            tensors[f"{layer}.{name}"] = 1 + value if len(size) == 1 else value
    return tensors


def _layer_sizes(family: str, hidden: int, features: int) -> dict[str, tuple[int, ...]]:
    heads, kv_heads, head_dim = 4, 2, 32
    sizes: dict[str, tuple[int, ...]] = {
        "input_layernorm.weight": (hidden,),
        "post_attention_layernorm.weight": (hidden,),
        "mlp.gate_proj.weight": (INTERMEDIATE, hidden),
        "mlp.up_proj.weight": (INTERMEDIATE, hidden),
        "mlp.down_proj.weight": (hidden, INTERMEDIATE),
    }
    if family == "deepseek":
        return sizes | {
            "self_attn.q_a_proj.weight": (64, features),
            "self_attn.q_a_layernorm.weight": (64,),
            "self_attn.q_b_proj.weight": (heads * (128 + 64), 64),
            "self_attn.kv_a_proj_with_mqa.weight": (512 + 64, features),
            "self_attn.kv_a_layernorm.weight": (512,),
            "self_attn.kv_b_proj.weight": (heads * (128 + 128), 512),
            "self_attn.o_proj.weight": (hidden, heads * 128),
        }
    if family == "qwen3":
        sizes |= {
            "self_attn.q_norm.weight": (head_dim,),
            "self_attn.k_norm.weight": (head_dim,),
        }
    return sizes | {
        "self_attn.q_proj.weight": (heads * head_dim, features),
        "self_attn.k_proj.weight": (kv_heads * head_dim, features),
        "self_attn.v_proj.weight": (kv_heads * head_dim, features),
        "self_attn.o_proj.weight": (hidden, heads * head_dim),
    }


def write_checkpoint(
    folder: Path, config: dict[str, Any], tensors: dict[str, torch.Tensor]
) -> Path:
    """`config.json`, and `model.safetensors` where there are tensors."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config))
    if tensors:
        contiguous = {name: tensor.contiguous() for name, tensor in tensors.items()}
        save_file(contiguous, folder / "model.safetensors", {"format": "pt"})
    return folder

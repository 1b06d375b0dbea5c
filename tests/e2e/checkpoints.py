# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""Writes target and draft checkpoints that speak the synthetic language.

Target: every attention output and every MLP output is zero, so a token's embedding
reaches the head unchanged, and all three auxiliary hidden states equal it.

Draft: ``fc`` takes ``first`` from auxiliary state 1, ``second`` from 2 and the ones
from 3; attention updates the residual stream (``attention.py``), the MLP adds
nothing, the head reads the result. It ships no ``embed_tokens``, so the target's is
shared with it, and a head of its own.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file

from . import attention, features
from .attention import Weights, noise
from .features import HIDDEN_SIZE
from .language import (
    VOCAB_SIZE,
    DraftVocabulary,
    full_vocabulary,
    permuted_vocabulary,
    reduced_vocabulary,
)

NUM_TARGET_LAYERS = 3
INTERMEDIATE_SIZE = 128


@dataclass(frozen=True)
class Family:
    """One model family.

    Attributes:
        target: Architecture of the target.
        draft: Architecture of the draft.
        model_type: Hugging Face's name of the configuration class.
        layer_prefix: Name of the draft's layer in its checkpoint.
        config: Configuration keys that only this family has.
        silent: Attention weights for a given input size that add nothing.
        reading: Attention weights of the draft's layer.
    """

    target: str
    draft: str
    model_type: str
    layer_prefix: str
    config: dict[str, Any]
    silent: Callable[[int], Weights]
    reading: Callable[[], Weights]


FAMILIES = {
    "llama": Family(
        target="LlamaForCausalLM",
        draft="LlamaForCausalLMEagle3",
        model_type="llama",
        layer_prefix="midlayer",
        config={"head_dim": attention.HEAD_DIM},
        silent=attention.llama_silent,
        reading=attention.llama_reading,
    ),
    "qwen3": Family(
        target="Qwen3ForCausalLM",
        draft="Eagle3Qwen3ForCausalLM",
        model_type="qwen3",
        layer_prefix="layers.0",
        config={"head_dim": attention.HEAD_DIM},
        silent=attention.qwen3_silent,
        reading=attention.qwen3_reading,
    ),
    "deepseek": Family(
        target="DeepseekV2ForCausalLM",
        draft="Eagle3DeepseekV2ForCausalLM",
        model_type="deepseek_v2",
        layer_prefix="midlayer",
        config=attention.MLA
        | {
            # Dense layers only: no layer comes after the first NUM_TARGET_LAYERS.
            "first_k_dense_replace": NUM_TARGET_LAYERS,
            # As every real DeepSeek model; a factor of 1 leaves rotation as it is.
            "rope_scaling": {
                "rope_type": "yarn",
                "factor": 1.0,
                "original_max_position_embeddings": attention.MAX_MODEL_LEN,
            },
        },
        silent=attention.deepseek_silent,
        reading=attention.deepseek_reading,
    ),
}


@dataclass(frozen=True)
class DraftCase:
    """How a draft ships its vocabulary.

    Attributes:
        vocabulary: The head's rows.
        size_key: Whether the config names ``draft_vocab_size``.
        maps: Whether the checkpoint has ``d2t`` and ``t2d``.
        broken: Whether one offset points outside the target vocabulary.
        deaf_to: An input that the draft ignores, "embedding" or "hidden state"
            (Llama only).
    """

    vocabulary: DraftVocabulary
    size_key: bool = True
    maps: bool = False
    broken: bool = False
    deaf_to: str = ""


DRAFT_CASES = {
    "full": DraftCase(full_vocabulary()),
    "default": DraftCase(full_vocabulary(), size_key=False),
    "full-d2t": DraftCase(full_vocabulary(), maps=True),
    "permuted": DraftCase(permuted_vocabulary(), maps=True),
    "reduced": DraftCase(reduced_vocabulary(), maps=True),
    "broken": DraftCase(reduced_vocabulary(), maps=True, broken=True),
    "no-embedding": DraftCase(full_vocabulary(), deaf_to="embedding"),
    "no-hidden-state": DraftCase(full_vocabulary(), deaf_to="hidden state"),
}


def write_target(family_name: str, folder: Path) -> Path:
    """Write a target checkpoint into ``folder``."""
    family = FAMILIES[family_name]
    torch.manual_seed(0)
    weights = {
        "model.embed_tokens.weight": features.states(list(range(VOCAB_SIZE))),
        "model.norm.weight": torch.ones(HIDDEN_SIZE),
        "lm_head.weight": features.target_head(),
    }
    for layer in range(NUM_TARGET_LAYERS):
        block = _block(family.silent(HIDDEN_SIZE))
        weights |= _prefixed(f"model.layers.{layer}.", block)
    config = _config(family, family.target, NUM_TARGET_LAYERS)
    return _save(folder, config, weights)


def write_draft(family_name: str, case_name: str, folder: Path) -> Path:
    """Write a draft checkpoint of one vocabulary case into ``folder``."""
    family, case = FAMILIES[family_name], DRAFT_CASES[case_name]
    torch.manual_seed(1)
    layer = _block(family.reading()) | {"hidden_norm.weight": torch.ones(HIDDEN_SIZE)}
    weights = _prefixed(f"{family.layer_prefix}.", layer)
    weights["fc.weight"] = _combine_auxiliary_states()
    weights["norm.weight"] = torch.ones(HIDDEN_SIZE)
    weights["lm_head.weight"] = features.draft_head(case.vocabulary)
    if case.maps:
        weights["d2t"] = torch.tensor(case.vocabulary.offsets)
        weights["t2d"] = torch.tensor(case.vocabulary.mask)
    if case.broken:
        weights["d2t"][40] += VOCAB_SIZE
    if case.deaf_to == "hidden state":
        weights["fc.weight"].zero_()
    if case.deaf_to == "embedding":
        # Cut the one path it takes; queries and keys still need its constant ones.
        weights[f"{family.layer_prefix}.self_attn.v_proj.weight"][:, :HIDDEN_SIZE] = 0
    config = _config(family, family.draft, num_layers=1)
    config["eagle_aux_hidden_state_layer_ids"] = [1, 2, 3]
    if case.size_key:
        config["draft_vocab_size"] = len(case.vocabulary)
    return _save(folder, config, weights)


def _block(attention_weights: Weights) -> Weights:
    """One decoder layer whose MLP adds nothing."""
    return _prefixed("self_attn.", attention_weights) | {
        "input_layernorm.weight": torch.ones(HIDDEN_SIZE),
        "post_attention_layernorm.weight": torch.ones(HIDDEN_SIZE),
        "mlp.gate_proj.weight": noise(INTERMEDIATE_SIZE, HIDDEN_SIZE),
        "mlp.up_proj.weight": noise(INTERMEDIATE_SIZE, HIDDEN_SIZE),
        "mlp.down_proj.weight": torch.zeros(HIDDEN_SIZE, INTERMEDIATE_SIZE),
    }


def _combine_auxiliary_states() -> torch.Tensor:
    """``fc``: each third of the state from another auxiliary state."""
    weight = torch.zeros(HIDDEN_SIZE, 3, HIDDEN_SIZE)
    for source, part in enumerate((features.FIRST, features.SECOND, features.ONES)):
        weight[part, source, part] = torch.eye(part.stop - part.start)
    return weight.flatten(1)


def _config(family: Family, architecture: str, num_layers: int) -> dict[str, Any]:
    return {
        "architectures": [architecture],
        "model_type": family.model_type,
        "vocab_size": VOCAB_SIZE,
        "hidden_size": HIDDEN_SIZE,
        "intermediate_size": INTERMEDIATE_SIZE,
        "num_hidden_layers": num_layers,
        "num_attention_heads": attention.HEADS,
        "num_key_value_heads": attention.HEADS,
        "hidden_act": "silu",
        "rms_norm_eps": 1e-6,
        "rope_theta": attention.ROPE_THETA,
        "max_position_embeddings": attention.MAX_MODEL_LEN,
        "attention_bias": False,
        "tie_word_embeddings": False,
        "bos_token_id": None,
        "eos_token_id": None,
        "dtype": "float32",
    } | family.config


def _prefixed(prefix: str, weights: Weights) -> Weights:
    return {prefix + name: weight for name, weight in weights.items()}


def _save(folder: Path, config: dict[str, Any], weights: Weights) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config, indent=2))
    contiguous = {name: weight.contiguous() for name, weight in weights.items()}
    save_file(contiguous, folder / "model.safetensors", metadata={"format": "pt"})
    return folder

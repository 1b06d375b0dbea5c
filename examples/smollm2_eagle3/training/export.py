# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""Writes the trained draft as the files of a checkpoint in the EAGLE-3 layout.

The checkpoint has no embeddings and no head: both are the target's. Without
`draft_vocab_size` in its config it drafts in the target's whole vocabulary.
`frequent_ids.json` lists the ids of a reduced draft vocabulary.
"""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import torch
from draft import Draft
from features import Text
from safetensors.torch import save_file
from settings import Recipe
from torch import Tensor

TAKEN_OVER = (
    "bos_token_id",
    "dtype",
    "eos_token_id",
    "head_dim",
    "hidden_act",
    "hidden_size",
    "intermediate_size",
    "max_position_embeddings",
    "num_attention_heads",
    "num_key_value_heads",
    "rms_norm_eps",
    "rope_parameters",
    "vocab_size",
)


def write_draft(
    draft: Draft, ids: Tensor, target: Path, recipe: Recipe, folder: Path
) -> None:
    """Writes weights in bfloat16, config and frequent ids into `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    weights = {
        name: weight.to(torch.bfloat16).contiguous()
        for name, weight in draft.state_dict().items()
    }
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    config = draft_config(json.loads((target / "config.json").read_text()), recipe)
    (folder / "config.json").write_text(json.dumps(config, indent=2) + "\n")
    lines = [
        ", ".join(map(str, ids[start : start + 16].tolist()))
        for start in range(0, len(ids), 16)
    ]
    (folder / "frequent_ids.json").write_text("[\n" + ",\n".join(lines) + "\n]\n")


def draft_config(target: dict[str, Any], recipe: Recipe) -> dict[str, Any]:
    """Returns the draft's config for a target's."""
    return {
        "architectures": ["LlamaForCausalLMEagle3"],
        "model_type": "llama",
        "num_hidden_layers": 1,
        "tie_word_embeddings": False,
        "eagle_aux_hidden_state_layer_ids": list(recipe.aux_layers),
    } | {key: target[key] for key in TAKEN_OVER}


def frequent_ids(texts: Iterable[Text], vocabulary: int, count: int) -> Tensor:
    """Returns the ids that answers use most, ascending; of equals the smaller ids."""
    used = torch.cat([text.tokens[text.answer :] for text in texts]).long()
    order = torch.bincount(used, minlength=vocabulary).argsort(
        descending=True, stable=True
    )
    return order[:count].sort().values

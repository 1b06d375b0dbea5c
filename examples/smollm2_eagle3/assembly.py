# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""Drafts in four vocabularies, all around the same trained layer.

They differ in what a checkpoint may say about the draft's ids and in nothing else, so
the three in full vocabulary propose the same tokens:

    full      as many ids as the target; its embeddings and head are the target's
    default   the same without the config's `draft_vocab_size`
    full-d2t  the same with a head of its own, equal to the target's, and with a map
              that moves nothing, as SpecForge exports full vocabularies
    reduced   the ids that the target uses most, with their rows of the target's head
"""

import json
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file

CONFIG = "config.json"
WEIGHTS = "model.safetensors"
FREQUENT_IDS = "frequent_ids.json"

Tensors = dict[str, torch.Tensor]


def write_draft(vocabulary: str, backbone: Path, target: Path, folder: Path) -> None:
    """Writes the draft's config and weights into `folder`.

    Args:
        vocabulary: one of those above.
        backbone: folder with what was trained, and the list of frequent ids.
        target: model folder, for the rows of its head.
        folder: empty.
    """
    config = json.loads((backbone / CONFIG).read_text())
    weights = load_file(backbone / WEIGHTS)
    size = config["vocab_size"]
    if vocabulary == "reduced":
        ids = torch.tensor(json.loads((backbone / FREQUENT_IDS).read_text()))
        size = len(ids)
        weights |= mapped_head(ids, head_of(target))
    elif vocabulary == "full-d2t":
        weights |= mapped_head(torch.arange(size), head_of(target))
    if vocabulary != "default":
        config["draft_vocab_size"] = size
    save_file(weights, folder / WEIGHTS, metadata={"format": "pt"})
    (folder / CONFIG).write_text(json.dumps(config, indent=2) + "\n")


def mapped_head(ids: torch.Tensor, head: torch.Tensor) -> Tensors:
    """Returns the head for some of the target's ids, and which ones they are.

    Args:
        ids: `[draft vocabulary]` int64, target ids in the order of the draft's.
        head: `[target vocabulary, hidden]`, the target's.
    """
    kept = torch.zeros(len(head), dtype=torch.bool)
    kept[ids] = True
    return {
        "lm_head.weight": head[ids].contiguous(),
        "d2t": ids - torch.arange(len(ids)),
        "t2d": kept,
    }


def head_of(target: Path) -> torch.Tensor:
    """Returns the rows that score tokens, `[vocabulary, hidden]`."""
    config: dict[str, Any] = json.loads((target / CONFIG).read_text())
    tied = config["tie_word_embeddings"]
    name = "model.embed_tokens.weight" if tied else "lm_head.weight"
    with safe_open(target / WEIGHTS, framework="pt") as weights:
        return weights.get_tensor(name)

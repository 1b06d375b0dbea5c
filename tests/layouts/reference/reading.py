# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""A checkpoint's config and tensors, brought to one form for the reference."""

import re
from typing import Any

import torch

Tensors = dict[str, torch.Tensor]


def flat_config(config: dict[str, Any]) -> dict[str, Any]:
    """All keys at one level; nested ones win, and a null is no value."""
    nested = dict(config.get("transformer_layer_config") or {})
    nested |= config.get("eagle_config") or {}
    flat = {key: value for key, value in config.items() if value is not None}
    flat |= {key: value for key, value in nested.items() if value is not None}
    if config.get("speculators_model_type") == "eagle3":
        # Speculators leaves the key out where it is true, as in its trained drafts.
        flat.setdefault("norm_before_residual", True)
    return flat


def split(tensors: Tensors) -> tuple[Tensors, Tensors]:
    """Weights as `layers.0.…` in float32, and apart from them the map's tensors."""
    weights, apart = {}, {}
    for spelled, value in tensors.items():
        last = spelled.split(".")[-1]
        if last in ("d2t", "t2d", "draft_id_to_target_id"):
            apart["t2d" if last == "t2d" else "d2t"] = value
            continue
        name = re.sub(r"^(model\.)?(midlayer\.)?", _first_layer, spelled)
        weights[name] = value.to(torch.float32)
    return weights, apart


def _first_layer(found: re.Match[str]) -> str:
    return "layers.0." if found[2] else ""


def group(weights: Tensors, prefix: str) -> Tensors:
    """The weights below `prefix`, without it."""
    return {
        name.removeprefix(prefix): value
        for name, value in weights.items()
        if name.startswith(prefix)
    }


def mapped_ids(apart: Tensors, draft_vocab: int) -> torch.Tensor:
    """Target id of each draft id, `[D]`: by offsets, by mask, else the same."""
    draft_ids = torch.arange(draft_vocab)
    if "d2t" in apart:
        return draft_ids + apart["d2t"].to(torch.int64)
    if "t2d" in apart and int(apart["t2d"].sum()) == draft_vocab:
        return apart["t2d"].nonzero().flatten()
    return draft_ids

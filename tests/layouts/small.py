# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""One small draft per family, which a test bends into an odd case."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from torch import nn

from tests.support.checkpoints import target_config
from tests.support.drafts import load_draft, own_rope_tables

from .checkpoint import Checkpoint, build
from .recipe import DEEPSEEK_YARN, Exporter, Recipe, Sizes
from .running import check_against_reference

TARGET, REDUCED = 1024, 256
FAMILIES = ("llama", "qwen3", "deepseek")
every_family = pytest.mark.parametrize("family", FAMILIES)
gqa_family = pytest.mark.parametrize("family", ("llama", "qwen3"))

# Exactly what scaling leaves as it is.
SIZES = Sizes(hidden=64, intermediate=128, heads=2, kv_heads=1, head_dim=32)
# vLLM makes a table of all positions; a thousandth of the real ones will do.
YARN = DEEPSEEK_YARN | {"factor": 4.0, "original_max_position_embeddings": 256}
ROPE: dict[str, dict[str, Any]] = {
    "llama": {"rope_theta": 10_000.0},
    "qwen3": {"rope_theta": 1_000_000.0},
    "deepseek": {"rope_theta": 50_000.0, "rope_scaling": YARN},
}
_EXPORTERS = {
    "llama": Exporter(architectures=("LlamaForCausalLMEagle3",)),
    "qwen3": Exporter(architectures=("Eagle3Qwen3ForCausalLM",), model_type="qwen3"),
    "deepseek": Exporter(
        architectures=("Eagle3DeepseekV2ForCausalLM",), model_type="deepseek_v2"
    ),
}


def small(
    family: str, exporter: dict[str, Any] | None = None, **changes: Any
) -> Checkpoint:
    """A draft before a target of 1024 ids, reduced to 256 with a map unless said.

    Args:
        exporter: changes to how it is exported.
        changes: of the recipe; `keys` are further config keys.
    """
    recipe = Recipe(
        name=family,
        exporter=replace(_EXPORTERS[family], **(exporter or {})),
        family=family,
        vocab=TARGET,
        draft_vocab=REDUCED,
        sizes=SIZES,
        target_layers=8,
    )
    recipe = replace(recipe, **changes)
    keys = dict(recipe.keys)
    if recipe.exporter.form == "plain":
        keys = ROPE[family] | keys
    else:
        keys["transformer_layer_config"] = ROPE[family]
    return build(replace(recipe, keys=keys))


def load(checkpoint: Checkpoint, folder: Path, **speculative: Any) -> nn.Module:
    """Write `checkpoint` into `folder`, and load it as vLLM does."""
    if checkpoint.parallel:
        speculative["parallel_drafting"] = True
    target = target_config(**checkpoint.target)
    with own_rope_tables():
        return load_draft(checkpoint.write(folder), target, **speculative)


def serve(checkpoint: Checkpoint, folder: Path) -> nn.Module:
    """Load, and compare with the reference."""
    model = load(checkpoint, folder / "draft")
    check_against_reference(model, checkpoint)
    return model


def refusal(checkpoint: Checkpoint, folder: Path) -> str:
    """The sentence with which loading is refused."""
    with pytest.raises(ValueError) as refused:
        load(checkpoint, folder / "draft")
    return str(refused.value)

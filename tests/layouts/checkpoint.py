# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""From a recipe to a checkpoint folder: config, tensors, files."""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file

from .recipe import LATENT, Files, Recipe, Sizes

Tensors = dict[str, torch.Tensor]
_APART = ("d2t", "t2d", "lm_head.weight", "mask_hidden")


@dataclass
class Checkpoint:
    """A draft's config and tensors, which a test may bend before it writes them."""

    config: dict[str, Any]
    tensors: Tensors
    files: Files = "safetensors"
    target: dict[str, Any] = field(default_factory=dict)
    parallel: bool = False

    def write(self, folder: Path) -> Path:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "config.json").write_text(json.dumps(self.config))
        tensors = {name: value.contiguous() for name, value in self.tensors.items()}
        if self.files == "bin":
            torch.save(tensors, folder / "pytorch_model.bin")
        elif self.files == "shards":
            _write_shards(folder, tensors)
        else:
            save_file(tensors, folder / "model.safetensors", {"format": "pt"})
        return folder


def _write_shards(folder: Path, tensors: Tensors) -> None:
    """Two shards and their index, every other tensor to each."""
    names = sorted(tensors)
    places = {}
    for number, part in enumerate((names[::2], names[1::2]), start=1):
        file = f"model-0000{number}-of-00002.safetensors"
        places |= dict.fromkeys(part, file)
        save_file({name: tensors[name] for name in part}, folder / file)
    index = {"metadata": {"total_size": 0}, "weight_map": places}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))


def build(recipe: Recipe, seed: int = 0) -> Checkpoint:
    """The checkpoint that `recipe` describes, with random weights."""
    sizes = recipe.sizes.scaled()
    return Checkpoint(
        config=_config(recipe, sizes),
        tensors=_Maker(recipe, sizes, seed).tensors(),
        files=recipe.exporter.files,
        target={
            "vocab_size": recipe.target,
            "hidden_size": sizes.target_hidden,
            "intermediate_size": 64,
            "num_attention_heads": 2,
            "num_key_value_heads": 1,
            "num_hidden_layers": recipe.target_layers,
        },
        parallel=recipe.is_parallel,
    )


def _config(recipe: Recipe, sizes: Sizes) -> dict[str, Any]:
    exporter = recipe.exporter
    layer = {
        "model_type": exporter.model_type,
        "vocab_size": recipe.vocab,
        "hidden_size": sizes.hidden,
        "intermediate_size": sizes.intermediate,
        "num_attention_heads": sizes.heads,
        "num_key_value_heads": sizes.kv_heads,
        "num_hidden_layers": recipe.layers,
        "hidden_act": "silu",
        "rms_norm_eps": 1e-6,
        "max_position_embeddings": 2048,
        "tie_word_embeddings": False,
        "head_dim": sizes.head_dim,
        "torch_dtype": str(exporter.dtype).removeprefix("torch."),
    }
    if recipe.family == "deepseek":
        layer |= LATENT | {"head_dim": ..., "first_k_dense_replace": 1}
    if sizes.target_hidden != sizes.hidden:
        layer["target_hidden_size"] = sizes.target_hidden
    top = {
        "architectures": exporter.architectures and list(exporter.architectures),
        "draft_vocab_size": recipe.draft_vocab,
        **exporter.keys,
        **recipe.keys,
    }
    if exporter.architectures is None:
        top["architectures"] = ...
    return _nest(exporter.form, layer, top)


def _nest(form: str, layer: dict[str, Any], top: dict[str, Any]) -> dict[str, Any]:
    if form != "plain":
        nested = layer | top.pop("transformer_layer_config", {})
        top = top | {
            "speculators_model_type": form,
            "transformer_layer_config": _without_gaps(nested),
        }
        return _without_gaps(top)
    return _without_gaps(layer | top)


def _without_gaps(config: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in config.items() if value is not ...}


class _Maker:
    """Random tensors under the names that an exporter gives them."""

    def __init__(self, recipe: Recipe, sizes: Sizes, seed: int) -> None:
        self._recipe, self._sizes = recipe, sizes
        self._random = torch.Generator().manual_seed(seed)

    def tensors(self) -> Tensors:
        exporter, prefix = self._recipe.exporter, self._recipe.exporter.prefix
        found = self._trunk() | self._head() | self._map()
        for index in range(self._recipe.layers):
            name = exporter.layer if index == 0 else f"layers.{index}"
            layer = self._layer(2 if index == 0 else 1)
            found |= {f"{name}.{key}": value for key, value in layer.items()}
        return {
            name if name.startswith("lm_head") else prefix + name: self._cast(value)
            for name, value in found.items()
        }

    def _cast(self, value: torch.Tensor) -> torch.Tensor:
        dtype = self._recipe.exporter.dtype
        return value.to(dtype) if value.is_floating_point() else value

    def _matrix(self, rows: int, columns: int) -> torch.Tensor:
        scale = 1.5 / columns**0.5
        return torch.randn(rows, columns, generator=self._random) * scale

    def _vector(self, size: int, mean: float = 1.0) -> torch.Tensor:
        return mean + torch.randn(size, generator=self._random) / 8

    def _trunk(self) -> Tensors:
        recipe, sizes = self._recipe, self._sizes
        hidden, wide = sizes.hidden, sizes.target_hidden or sizes.hidden
        found = {"norm.weight": self._vector(hidden)}
        if recipe.aux:
            found["fc.weight"] = self._matrix(hidden, recipe.aux * wide)
        if "input_norm" in recipe.further:
            found["input_norm.weight"] = self._vector(recipe.aux * wide)
        if "fc_norm" in recipe.further:
            for index in range(recipe.aux):
                found[f"fc_norm.{index}.weight"] = self._vector(wide)
        if recipe.is_parallel:
            mask = self._vector(recipe.aux * wide, mean=0)
            found["mask_hidden"] = mask.reshape(1, 1, -1)
        return found

    def _head(self) -> Tensors:
        recipe, hidden, found = self._recipe, self._sizes.hidden, {}
        if recipe.exporter.embed:
            found["embed_tokens.weight"] = self._matrix(recipe.vocab, hidden)
        if recipe.exporter.head:
            found["lm_head.weight"] = self._matrix(recipe.head_rows, hidden)
        return found

    def _map(self) -> Tensors:
        """Sorted random target ids; zeros where a full vocabulary ships a map."""
        recipe, found = self._recipe, {}
        reach = min(recipe.vocab, recipe.target)
        if recipe.head_rows < reach:
            order = torch.randperm(reach, generator=self._random)
            ids = order[: recipe.head_rows].sort().values
            mask = torch.zeros(recipe.vocab, dtype=torch.bool).index_fill_(0, ids, True)
        else:
            ids = torch.arange(recipe.head_rows)
            mask = torch.full((recipe.vocab,), recipe.t2d_value)
        if recipe.ships(recipe.exporter.d2t):
            found["d2t"] = ids - torch.arange(len(ids))
        if recipe.ships(recipe.exporter.t2d):
            found["t2d"] = mask
        return found

    def _layer(self, inputs: int) -> Tensors:
        hidden, inner = self._sizes.hidden, self._sizes.intermediate
        found = {
            "input_layernorm.weight": self._vector(hidden),
            "post_attention_layernorm.weight": self._vector(hidden),
            "mlp.gate_proj.weight": self._matrix(inner, hidden),
            "mlp.up_proj.weight": self._matrix(inner, hidden),
            "mlp.down_proj.weight": self._matrix(hidden, inner),
        }
        if inputs == 2:
            found["hidden_norm.weight"] = self._vector(hidden)
        latent = self._recipe.family == "deepseek"
        attention = self._latent(inputs) if latent else self._grouped(inputs)
        return found | {f"self_attn.{key}": value for key, value in attention.items()}

    def _grouped(self, inputs: int) -> Tensors:
        sizes, further = self._sizes, self._recipe.further
        widths = {
            "q_proj": sizes.heads * sizes.head_dim,
            "k_proj": sizes.kv_heads * sizes.head_dim,
            "v_proj": sizes.kv_heads * sizes.head_dim,
        }
        found = {}
        for name, width in widths.items():
            found[f"{name}.weight"] = self._matrix(width, inputs * sizes.hidden)
            if "qkv_bias" in further:
                found[f"{name}.bias"] = self._vector(width, mean=0)
        found["o_proj.weight"] = self._matrix(sizes.hidden, widths["q_proj"])
        if "o_bias" in further:
            found["o_proj.bias"] = self._vector(sizes.hidden, mean=0)
        if self._recipe.family == "qwen3":
            found["q_norm.weight"] = self._vector(sizes.head_dim)
            found["k_norm.weight"] = self._vector(sizes.head_dim)
        return found

    def _latent(self, inputs: int) -> Tensors:
        features, heads = inputs * self._sizes.hidden, self._sizes.heads
        rank, latent = LATENT["q_lora_rank"], LATENT["kv_lora_rank"]
        plain, turned = LATENT["qk_nope_head_dim"], LATENT["qk_rope_head_dim"]
        value = LATENT["v_head_dim"]
        return {
            "q_a_proj.weight": self._matrix(rank, features),
            "q_a_layernorm.weight": self._vector(rank),
            "q_b_proj.weight": self._matrix(heads * (plain + turned), rank),
            "kv_a_proj_with_mqa.weight": self._matrix(latent + turned, features),
            "kv_a_layernorm.weight": self._vector(latent),
            "kv_b_proj.weight": self._matrix(heads * (plain + value), latent),
            "o_proj.weight": self._matrix(self._sizes.hidden, heads * value),
        }

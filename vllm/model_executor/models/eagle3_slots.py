# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""The parameters of a draft as a checkpoint sees them.

vLLM stacks q/k/v, gate/up and MLA's down-projections into one parameter each, so the
checkpoint's names and the model's differ. `weight_slots` lists the tensors that a model
can take, by name, with the shape that each must have: the one table behind unknown
names, missing names and wrong shapes.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

import torch
from torch import nn
from vllm.model_executor.layers.linear import (
    LinearBase,
    MergedColumnParallelLinear,
    QKVParallelLinear,
    UnquantizedLinearMethod,
)
from vllm.model_executor.layers.quantization.kv_cache import BaseKVCacheMethod
from vllm.model_executor.layers.vocab_parallel_embedding import (
    UnquantizedEmbeddingMethod,
    VocabParallelEmbedding,
)
from vllm.model_executor.model_loader.weight_utils import default_weight_loader

from .eagle3_quant_shapes import SCALAR, quantised_shape

# Of the trunk's parameters in a draft model.
TRUNK = "model."

# Stacked module -> checkpoint module -> the shard it fills.
StackedModules: TypeAlias = Mapping[str, Mapping[str, str | int]]


@dataclass(frozen=True)
class WeightSlot:
    """A place for one checkpoint tensor.

    Attributes:
        parameter: the model's parameter that takes it.
        required: whether the parameter holds rubbish until the checkpoint fills it.
        shape: unsharded shape, or `None` where a quantisation method decides; `()` is
            one number, with dimensions or without.
        dtype: of the parameter.
    """

    parameter: str
    required: bool
    shape: tuple[int, ...] | None
    dtype: torch.dtype


def weight_slots(model: nn.Module, stacked: StackedModules) -> dict[str, WeightSlot]:
    """All slots of `model`, by the tensor's name in the model before stacking.

    Parameters of `model` itself are left out: the vocabulary map is no weight.
    """
    slots = {}
    for path, module in model.named_modules():
        for leaf, parameter in module.named_parameters(recurse=False):
            if not path:
                continue
            name = f"{path}.{leaf}"
            required = parameter.numel() > 0 and not _fills_itself(module, leaf)
            for part, shard in _parts(path, stacked):
                shape = _shape(module, leaf, shard, parameter)
                slot = WeightSlot(name, required, shape, parameter.dtype)
                slots[f"{part}.{leaf}"] = slot
            if name not in slots:  # an exporter may have stacked it already
                shape = _shape(module, leaf, None, parameter)
                slots[name] = WeightSlot(name, False, shape, parameter.dtype)
    return slots


def _parts(
    path: str, stacked: StackedModules
) -> Iterator[tuple[str, str | int | None]]:
    """Checkpoint modules that fill the module at `path`, and the shard of each."""
    parent, _, last = path.rpartition(".")
    if last not in stacked:
        yield path, None
        return
    for part, shard in stacked[last].items():
        yield f"{parent}.{part}", shard


def _fills_itself(module: nn.Module, leaf: str) -> bool:
    """KV-cache scales have defaults; online quantisation makes its own scales."""
    method = getattr(module, "quant_method", None)
    if isinstance(method, BaseKVCacheMethod):
        return True
    online = getattr(method, "uses_meta_device", False)
    return online and leaf not in ("weight", "bias")


def is_quantised(module: nn.Module) -> bool:
    """Whether a matrix of the draft is kept in a quantised format."""
    plain = (UnquantizedLinearMethod, UnquantizedEmbeddingMethod)
    is_matrix = isinstance(module, LinearBase | VocabParallelEmbedding)
    return is_matrix and not isinstance(module.quant_method, plain)


def _shape(
    module: nn.Module, leaf: str, shard: str | int | None, parameter: torch.Tensor
) -> tuple[int, ...] | None:
    method = getattr(module, "quant_method", None)
    if method is None:
        return tuple(parameter.shape)
    if not isinstance(module, LinearBase | VocabParallelEmbedding):
        return SCALAR if parameter.numel() == 1 else None  # scales of a cache
    rows, columns = _rows(module, shard), _columns(module)
    if leaf == "bias":
        return (rows,)
    if not is_quantised(module):
        return (rows, columns) if leaf == "weight" else None
    return quantised_shape(module, parameter, rows, columns, is_part=shard is not None)


def _rows(module: nn.Module, shard: str | int | None) -> int:
    if isinstance(module, VocabParallelEmbedding):
        return module.org_vocab_size
    assert isinstance(module, LinearBase), type(module)
    if isinstance(module, QKVParallelLinear) and shard is not None:
        kv_heads = module.total_num_kv_heads
        return {
            "q": module.total_num_heads * module.head_size,
            "k": kv_heads * module.head_size,
            "v": kv_heads * module.v_head_size,
        }[str(shard)]
    if isinstance(module, MergedColumnParallelLinear) and isinstance(shard, int):
        return module.output_sizes[shard]
    return module.output_size


def _columns(module: nn.Module) -> int:
    if isinstance(module, VocabParallelEmbedding):
        return module.embedding_dim
    assert isinstance(module, LinearBase), type(module)
    return module.input_size


def deliver(tensor: torch.Tensor, value: torch.Tensor) -> None:
    """Write `value` into a tensor of a model, where vLLM wants it written.

    While vLLM reloads a model, its tensors are on the meta device, and their loaders
    remember what is written.
    """
    getattr(tensor, "weight_loader", default_weight_loader)(tensor, value)

# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""The shape in which a checkpoint must hold a parameter of a quantised module.

vLLM's loaders take a part of what they get, as tensor parallelism asks, so a tensor
with rows too many would be cut off without a word. Its parameters know which of their
dimensions run along the module's rows and columns; the rest is proportion.
"""

import torch
from torch import nn
from vllm.model_executor.layers.linear import LinearBase
from vllm.model_executor.layers.vocab_parallel_embedding import VocabParallelEmbedding
from vllm.model_executor.parameter import (
    BasevLLMParameter,
    BlockQuantScaleParameter,
    PerTensorScaleParameter,
)

# Of one number, whether the exporter gave it a dimension or not.
SCALAR = ()


def quantised_shape(
    module: nn.Module,
    parameter: torch.Tensor,
    rows: int,
    columns: int,
    *,
    is_part: bool,
) -> tuple[int, ...] | None:
    """Unsharded shape of one checkpoint tensor of `parameter`.

    Args:
        rows: output features of the tensor's module in the checkpoint.
        columns: its input features.
        is_part: whether vLLM stacks the tensor with others.

    Returns:
        `SCALAR` for one number, and `None` where no rule is known.
    """
    if not isinstance(parameter, BasevLLMParameter):
        return None
    if isinstance(parameter, PerTensorScaleParameter):
        return SCALAR if is_part or parameter.numel() == 1 else None
    if isinstance(parameter, BlockQuantScaleParameter):
        return _blocks(module, parameter, rows, columns)
    along = {
        getattr(parameter, "output_dim", None): (rows, _local_rows(module)),
        getattr(parameter, "input_dim", None): (columns, _local_columns(module)),
    }
    shape = []
    for dimension, size in enumerate(parameter.shape):
        full, local = along.get(dimension, (1, 1))
        if size * full % local:
            return None
        shape.append(size * full // local)
    return SCALAR if shape == [1] else tuple(shape)


def _blocks(
    module: nn.Module, parameter: torch.Tensor, rows: int, columns: int
) -> tuple[int, ...] | None:
    block = getattr(module, "weight_block_size", None)
    if block is None or parameter.ndim != 2:
        return None
    return (-(-rows // block[0]), -(-columns // block[1]))


def _local_rows(module: nn.Module) -> int:
    """Rows of the whole parameter on this rank, padding included."""
    if isinstance(module, VocabParallelEmbedding):
        return module.num_embeddings_per_partition
    assert isinstance(module, LinearBase), type(module)
    return sum(getattr(module, "output_partition_sizes", [module.output_size]))


def _local_columns(module: nn.Module) -> int:
    if isinstance(module, VocabParallelEmbedding):
        return module.embedding_dim
    assert isinstance(module, LinearBase), type(module)
    return getattr(module, "input_size_per_partition", module.input_size)

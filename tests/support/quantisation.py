# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""Quantised checkpoints as exporters write them, with what they stand for.

Each function here replaces matrices of a draft by quantised tensors, and returns the
matrices that those stand for: the reference, by arithmetic of its own.
"""

import contextlib
from collections.abc import Iterable, Iterator
from typing import Any
from unittest import mock

import torch
from torch import nn

Tensors = dict[str, torch.Tensor]

_FP8_MAX = torch.finfo(torch.float8_e4m3fn).max


def matrices(tensors: Tensors, *leave_out: str) -> list[str]:
    """Modules of a draft that are matrices, without those that end as given."""
    return [
        name.removesuffix(".weight")
        for name, value in tensors.items()
        if value.ndim == 2 and not name.removesuffix(".weight").endswith(leave_out)
    ]


def to_int8(tensors: Tensors, names: Iterable[str]) -> Tensors:
    """A scale for each row, `[rows, 1]`."""
    meant = {}
    for name in names:
        matrix = tensors[f"{name}.weight"]
        scale = matrix.abs().amax(1, keepdim=True) / 127
        whole = (matrix / scale).round()
        tensors[f"{name}.weight"] = whole.to(torch.int8)
        tensors[f"{name}.weight_scale"] = scale
        meant[name] = whole * scale
    return meant


def to_fp8(
    tensors: Tensors,
    names: Iterable[str],
    *,
    rows: bool = False,
    input_scale: bool = False,
    shape: tuple[int, ...] | None = None,
) -> Tensors:
    """One scale for all, or one for each row.

    Args:
        input_scale: whether activations have a static scale too.
        shape: of the scale; by default `[rows, 1]`, or none at all.
    """
    meant = {}
    for name in names:
        matrix = tensors[f"{name}.weight"]
        largest = matrix.abs().amax(1, keepdim=True) if rows else matrix.abs().amax()
        scale = largest / _FP8_MAX
        small = (matrix / scale).to(torch.float8_e4m3fn)
        tensors[f"{name}.weight"] = small
        tensors[f"{name}.weight_scale"] = scale if shape is None else scale.view(shape)
        meant[name] = small.float() * scale
        if input_scale:
            tensors[f"{name}.input_scale"] = torch.tensor(0.25)
    return meant


def to_packed(
    tensors: Tensors, names: Iterable[str], *, bits: int, group: int
) -> Tensors:
    """Offset binary, several to an int32, lowest first; a scale for each group."""
    meant = {}
    for name in names:
        matrix = tensors.pop(f"{name}.weight")
        rows, columns = matrix.shape
        grouped = matrix.view(rows, -1, group)
        limit = 2 ** (bits - 1)
        scale = grouped.abs().amax(2, keepdim=True) / (limit - 1)
        whole = (grouped / scale).round()
        fields = (whole.long() + limit).view(rows, -1, 32 // bits)
        packed = (fields << torch.arange(0, 32, bits)).sum(2)
        packed = torch.where(packed >= 2**31, packed - 2**32, packed)
        tensors[f"{name}.weight_packed"] = packed.to(torch.int32)
        tensors[f"{name}.weight_scale"] = scale[..., 0]
        tensors[f"{name}.weight_shape"] = torch.tensor([rows, columns])
        meant[name] = (whole * scale).view(rows, columns)
    return meant


def compressed_tensors(kind: str, **keys: Any) -> dict[str, Any]:
    """The config of llm-compressor for `kind`: int8, fp8, int4 or int8-packed."""

    def numbers(bits: int, number: str, **more: Any) -> dict[str, Any]:
        return {"num_bits": bits, "type": number, "symmetric": True, **more}

    weights, activations, layout = {
        "int8": (
            numbers(8, "int", strategy="channel", dynamic=False),
            numbers(8, "int", strategy="token", dynamic=True),
            "int-quantized",
        ),
        "fp8": (
            numbers(8, "float", strategy="channel", dynamic=False),
            numbers(8, "float", strategy="token", dynamic=True),
            "float-quantized",
        ),
        "int4": (
            numbers(4, "int", strategy="group", group_size=32, dynamic=False),
            None,
            "pack-quantized",
        ),
        "int8-packed": (
            numbers(8, "int", strategy="group", group_size=32, dynamic=False),
            None,
            "pack-quantized",
        ),
    }[kind]
    group = {
        "targets": keys.pop("targets", ["Linear"]),
        "weights": weights,
        "input_activations": activations,
        "format": layout,
    }
    return {
        "quant_method": "compressed-tensors",
        "format": layout,
        "quantization_status": "compressed",
        "ignore": [],
        "config_groups": {"group_0": group},
        **keys,
    }


class NoKernel:
    """Stands where this machine has no kernel; a model with it cannot run."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        """Takes whatever vLLM gives its kernels."""

    def input_quant_key(self) -> None:
        """vLLM asks whether a layer before may quantise for it."""


@contextlib.contextmanager
def no_kernels() -> Iterator[None]:
    """Lets quantised models be built and loaded on any machine, but not run."""
    from vllm.model_executor.kernels import linear

    def choose(*arguments: Any, **named: Any) -> type[NoKernel]:
        return NoKernel

    schemes = "vllm.model_executor.layers.quantization.compressed_tensors.schemes"
    packed = f"{schemes}.compressed_tensors_wNa16.choose_mp_linear_kernel"
    with (
        mock.patch.object(linear, "choose_scaled_mm_linear_kernel", choose),
        mock.patch(packed, choose),
    ):
        yield


def quantised_modules(model: nn.Module) -> set[str]:
    """Names of the matrices that are kept quantised, without `model.` in front."""
    from vllm.model_executor.layers.linear import LinearBase, UnquantizedLinearMethod
    from vllm.model_executor.layers.vocab_parallel_embedding import (
        UnquantizedEmbeddingMethod,
        VocabParallelEmbedding,
    )

    plain = (UnquantizedLinearMethod, UnquantizedEmbeddingMethod)
    return {
        name.removeprefix("model.")
        for name, module in model.named_modules()
        if isinstance(module, LinearBase | VocabParallelEmbedding)
        and not isinstance(module.quant_method, plain)
    }

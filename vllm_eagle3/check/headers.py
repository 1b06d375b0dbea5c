# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""Checkpoint files without their weights: names, shapes and dtypes.

Within `without_weights`, vLLM's own loader reads checkpoints as ever (which files,
which of them count, in which order) and gets tensors on the meta device. Only what the
verdict depends on by value is read: the vocabulary map, biases of norms (which may be
left out if they are zeros) and single numbers such as scales. That is kilobytes.
"""

import contextlib
import json
import math
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import safetensors
import torch

# A map of a million ids in int64; a tensor that claims more is no map.
MOST_BYTES = 16 * 2**20

_DTYPES = {
    "BOOL": torch.bool,
    "U8": torch.uint8,
    "I8": torch.int8,
    "I16": torch.int16,
    "U16": torch.uint16,
    "I32": torch.int32,
    "U32": torch.uint32,
    "I64": torch.int64,
    "U64": torch.uint64,
    "F16": torch.float16,
    "BF16": torch.bfloat16,
    "F32": torch.float32,
    "F64": torch.float64,
    "F8_E4M3": torch.float8_e4m3fn,
    "F8_E5M2": torch.float8_e5m2,
    "F8_E8M0": torch.float8_e8m0fnu,
    "F4": torch.float4_e2m1fn_x2,
    "C64": torch.complex64,
}


def item_bytes(dtype: str) -> int:
    """Bytes of one element of a dtype as safetensors calls it."""
    return _DTYPES[dtype].itemsize


def is_read(name: str, shape: tuple[int, ...], item_bytes: int) -> bool:
    """Whether the verdict depends on the values of this tensor."""
    from vllm.model_executor.models.eagle3_checkpoint import reads_values

    count = math.prod(shape)
    # vLLM's loaders take single numbers, such as scales, out of their tensors.
    return count == 1 or (reads_values(name) and count * item_bytes <= MOST_BYTES)


class HeaderOnly:
    """Stands in for `safetensors.safe_open`: the same file, checked by the same code.

    Args:
        path: of the file.
        framework: as in `safe_open`; tensors are torch's whatever it says.
    """

    def __init__(self, path: str, framework: str = "pt", device: str = "cpu") -> None:
        # NumPy's reader maps the file; torch's would reserve memory for all of it.
        self._file = safetensors.safe_open(path, framework="np")
        self._path = path
        with open(path, "rb") as file:
            (length,) = struct.unpack("<Q", file.read(8))
            self._header = json.loads(file.read(length))
        self._begin = 8 + length

    def __enter__(self) -> "HeaderOnly":
        self._file.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        self._file.__exit__(*error)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)

    def get_tensor(self, name: str) -> torch.Tensor:
        """The tensor, on the meta device unless its values count."""
        entry = self._header[name]
        shape, dtype = tuple(entry["shape"]), _DTYPES[entry["dtype"]]
        if dtype == torch.float4_e2m1fn_x2 and shape:  # two in each of torch's elements
            shape = (*shape[:-1], shape[-1] // 2)
        if not is_read(name, shape, dtype.itemsize):
            return torch.empty(shape, dtype=dtype, device="meta")
        begin, end = entry["data_offsets"]
        with open(self._path, "rb") as file:
            file.seek(self._begin + begin)
            values = bytearray(file.read(end - begin))
        if not values:
            return torch.empty(shape, dtype=dtype)
        return torch.frombuffer(values, dtype=dtype).reshape(shape)


def load_headers(path: str | Path, **_: Any) -> dict[str, torch.Tensor]:
    """Stands in for `torch.load` of a `pytorch_model.bin`: maps it, runs no code.

    A file in the format before torch 1.6 cannot be mapped, and is read.
    """
    options: dict[str, Any] = {"map_location": "cpu", "weights_only": True}
    try:
        state = _load(path, mmap=True, **options)
    except RuntimeError as error:
        if "_use_new_zipfile_serialization" not in str(error):
            raise
        state = _load(path, **options)
    if not isinstance(state, dict):
        return state
    return {name: _without_values(name, tensor) for name, tensor in state.items()}


def _without_values(name: Any, tensor: Any) -> Any:
    if not isinstance(name, str) or not isinstance(tensor, torch.Tensor):
        return tensor  # the server gets it as it is, too
    if is_read(name, tuple(tensor.shape), tensor.dtype.itemsize):
        return tensor.clone()  # the mapped file may be gone by then
    return tensor.to("meta")


_load = torch.load


@contextlib.contextmanager
def without_weights() -> Iterator[None]:
    """Within, vLLM's loader delivers headers in place of weights."""
    from vllm.model_executor.model_loader import weight_utils

    with (
        mock.patch.object(weight_utils, "safe_open", HeaderOnly),
        mock.patch.object(torch, "load", load_headers),
        # Of files on a network drive, which it would read ahead as a whole.
        mock.patch.object(weight_utils, "_prefetch_all_checkpoints"),
    ):
        yield

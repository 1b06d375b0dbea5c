# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""The CUDA kernels, compiled for the CPU and called with tensors."""

import ctypes
import os
import subprocess
from pathlib import Path

import torch

_HERE = Path(__file__).resolve().parent
_INFINITY = {
    torch.float32: 0x7F800000,
    torch.bfloat16: 0x7F80,
    torch.float16: 0x7C00,
}


class Kernels:
    """Both operators as a GPU would compute them."""

    def __init__(self, library: Path) -> None:
        self._library = ctypes.CDLL(str(library))

    def argmax(
        self, logits: torch.Tensor, target_ids: torch.Tensor | None, segments: int
    ) -> torch.Tensor:
        """See `draft_argmax_to_target`; `segments` blocks share a row."""
        result = torch.empty(len(logits), dtype=torch.int64)
        self._library.emulated_argmax(
            *_format(logits),
            *map(ctypes.c_int64, (*logits.shape, logits.stride(0))),
            None if target_ids is None else _place(target_ids),
            ctypes.c_int64(segments),
            _place(result),
        )
        return result

    def widen(
        self, logits: torch.Tensor, draft_ids: torch.Tensor, out: torch.Tensor
    ) -> torch.Tensor:
        """See `widen_draft_logits`; writes into `out`, `[tokens, T]`, dense."""
        self._library.emulated_widen(
            *_format(logits),
            *map(ctypes.c_int64, (len(logits), logits.stride(0))),
            _place(draft_ids),
            ctypes.c_int64(len(draft_ids)),
            _place(out),
        )
        return out


def build(folder: Path) -> Kernels:
    """Compiles them; an access that a GPU would refuse as unaligned ends the process.

    Args:
        folder: Where to put the library.
    """
    library = folder / "kernels.so"
    compiler = os.environ.get("CXX", "c++").split()
    options = ["-std=c++20", "-O1", "-shared", "-fPIC", f"-I{_HERE}"]
    options += ["-fsanitize=alignment", "-fsanitize-undefined-trap-on-error"]
    command = [*compiler, *options, str(_HERE / "kernels.cpp"), "-o", str(library)]
    subprocess.run(command, check=True)
    return Kernels(library)


def _format(logits: torch.Tensor) -> tuple[ctypes.c_int, ctypes.c_uint32, object]:
    size = ctypes.c_int(logits.element_size())
    return size, ctypes.c_uint32(_INFINITY[logits.dtype]), _place(logits)


def _place(tensor: torch.Tensor) -> ctypes.c_void_p:
    return ctypes.c_void_p(tensor.data_ptr())

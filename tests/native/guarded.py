# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""Tensors behind whose last element, or before whose first, nothing may be touched."""

import ctypes
import mmap

import torch

_LIBC = ctypes.CDLL(None, use_errno=True)
_NO_ACCESS = 0


def at_the_end_of_memory(tensor: torch.Tensor) -> torch.Tensor:
    """A copy whose last byte is the last before a page that may not be read."""
    return _between_guards(tensor, at_end=True)


def at_the_start_of_memory(tensor: torch.Tensor) -> torch.Tensor:
    """A copy whose first byte is the first after a page that may not be read."""
    return _between_guards(tensor, at_end=False)


def _between_guards(tensor: torch.Tensor, *, at_end: bool) -> torch.Tensor:
    page = mmap.PAGESIZE
    size = tensor.numel() * tensor.element_size()
    room = -(-size // page) * page
    memory = mmap.mmap(-1, room + 2 * page)
    start = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    for guard in (start, start + page + room):
        if _LIBC.mprotect(ctypes.c_void_p(guard), page, _NO_ACCESS):
            raise OSError(ctypes.get_errno(), "mprotect")
    # The buffer keeps the memory, and the tensor the buffer.
    copy = torch.frombuffer(
        memory,
        dtype=tensor.dtype,
        count=tensor.numel(),
        offset=page + (room - size if at_end else 0),
    )
    return copy.view(tensor.shape).copy_(tensor)

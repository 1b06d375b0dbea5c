# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""The two operators on draft logits: native where they are built, else in PyTorch.

The native ones (`csrc/`) read the draft's logits once and write the result once; they
are bit for bit equal to what stands here. Torch only, no vLLM.
"""

import functools

import torch

_NATIVE_DTYPES = frozenset({torch.float32, torch.bfloat16, torch.float16})


def draft_argmax_to_target(
    logits: torch.Tensor, target_ids: torch.Tensor | None
) -> torch.Tensor:
    """The target id of each row's greatest logit; of equals, the lowest draft id's.

    As for `torch.argmax`, NaN is greater than everything.

    Args:
        logits: `[tokens, D]`, `D > 0`, of any strides.
        target_ids: int64 `[D]`, or `None` where a draft id is the target id.

    Returns:
        `[tokens]` int64.
    """
    if _is_native("draft_argmax_to_target", logits):
        return torch.ops.vllm_eagle3.draft_argmax_to_target(logits, target_ids)
    # On CPUs, max takes half the time of argmax and finds the same id.
    draft_ids = logits.max(-1).indices
    return draft_ids if target_ids is None else target_ids[draft_ids]


def widen_draft_logits(
    logits: torch.Tensor, target_ids: torch.Tensor, draft_ids: torch.Tensor
) -> torch.Tensor:
    """Spread draft logits over the target's ids, `-inf` where no draft id maps.

    Args:
        logits: `[tokens, D]` of any strides.
        target_ids: int64 `[D]`, one-to-one, in `[0, T)`.
        draft_ids: int32 `[T]`, its inverse, see `inverse_ids`.

    Returns:
        `[tokens, T]`, dense.
    """
    if _is_native("widen_draft_logits", logits):
        return torch.ops.vllm_eagle3.widen_draft_logits(logits, target_ids, draft_ids)
    widened = logits.new_full((*logits.shape[:-1], len(draft_ids)), -torch.inf)
    return widened.index_copy_(-1, target_ids, logits)


def inverse_ids(target_ids: torch.Tensor, target_vocab_size: int) -> torch.Tensor:
    """int32 `[T]`: the draft id of each target id, -1 where there is none.

    Args:
        target_ids: int64 `[D]`, one-to-one, in `[0, T)`.
    """
    size = len(target_ids)
    ids = torch.arange(size, dtype=torch.int32, device=target_ids.device)
    return ids.new_full((target_vocab_size,), -1).index_copy_(0, target_ids, ids)


def _is_native(name: str, logits: torch.Tensor) -> bool:
    return logits.dtype in _NATIVE_DTYPES and _has_kernel(name, logits.device.type)


# Compiled code takes the answer as it is; what it is made of cannot be traced.
@torch.compiler.assume_constant_result
def _has_kernel(name: str, device: str) -> bool:
    return device in _devices(name)


@functools.cache
def _devices(name: str) -> frozenset[str]:
    """Device types with a native kernel; they are loaded before any model is."""
    if not hasattr(torch.ops.vllm_eagle3, name):
        return frozenset()
    has_kernel = torch._C._dispatch_has_kernel_for_dispatch_key
    return frozenset(
        device
        for device, key in (("cpu", "CPU"), ("cuda", "CUDA"))
        if has_kernel(f"vllm_eagle3::{name}", key)
    )

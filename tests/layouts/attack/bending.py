# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""Bends applied to a checkpoint: tensors, map, config."""

from collections.abc import Callable

import torch

from ..checkpoint import Checkpoint, Tensors, build
from .examples import Bend, Example

_EXTRA = [
    "d2t",
    "t2d",
    "draft_id_to_target_id",
    "other.d2t",
    "embed_tokens.weight",
    "lm_head.bias",
    "norm.bias",
    "layers.7.mlp.up_proj.weight",
    "layers.0.self_attn.q_proj.bias",
    "midlayer.mlp.down_proj.bias",
    "fc.bias",
    "verifier_lm_head.weight",
    "mask_hidden",
    "rotary_emb.inv_freq",
    "",
    "model.",
    "layers.0",
    "self_attn",
]
_DTYPES = [
    torch.float64,
    torch.float32,
    torch.bfloat16,
    torch.float16,
    torch.int64,
    torch.int32,
    torch.uint8,
    torch.bool,
    torch.float8_e4m3fn,
    torch.complex64,
]


def bent(example: Example) -> Checkpoint:
    """The example's checkpoint with all its bends."""
    checkpoint = build(example.recipe, example.seed)
    for bend in example.bends:
        _BENDS[bend.kind](checkpoint, bend)
    return checkpoint


def _name(tensors: Tensors, bend: Bend) -> str:
    names = sorted(tensors)
    return names[bend.where % len(names)]


def _find(tensors: Tensors, last: str) -> str | None:
    return next((name for name in tensors if name.split(".")[-1] == last), None)


def _drop(checkpoint: Checkpoint, bend: Bend) -> None:
    if len(checkpoint.tensors) > 1:
        del checkpoint.tensors[_name(checkpoint.tensors, bend)]


def _copy(checkpoint: Checkpoint, bend: Bend) -> None:
    """One tensor under a second of its names."""
    name = _name(checkpoint.tensors, bend)
    other = f"model.{name}" if bend.how % 2 else name.replace("midlayer.", "layers.0.")
    checkpoint.tensors.setdefault(other, checkpoint.tensors[name].clone())


def _rename(checkpoint: Checkpoint, bend: Bend) -> None:
    name = _name(checkpoint.tensors, bend)
    affixes = [
        f"model.{name}",
        f"{name}s",
        f"x{name}",
        name.upper(),
        f"layers.1.{name}",
    ]
    value = checkpoint.tensors.pop(name)
    checkpoint.tensors[affixes[bend.how % len(affixes)]] = value


def _extra(checkpoint: Checkpoint, bend: Bend) -> None:
    name = _EXTRA[bend.where % len(_EXTRA)]
    sizes = [(1,), (5,), (64,), (64, 64), (0,), ()]
    size = sizes[bend.how % len(sizes)]
    checkpoint.tensors.setdefault(name, torch.ones(size))


def _shape(checkpoint: Checkpoint, bend: Bend) -> None:
    name = _name(checkpoint.tensors, bend)
    value = checkpoint.tensors[name]
    ways: list[Callable[[], torch.Tensor]] = [
        lambda: value[:-1],
        lambda: torch.cat((value, value[-1:])) if value.ndim else value,
        lambda: value.transpose(0, -1),
        lambda: value.flatten(),
        lambda: value[None],
        lambda: value[..., None],
        lambda: value.new_zeros(()),
        lambda: value.new_zeros((0,)),
        lambda: value.new_zeros((0, *value.shape[1:])),
        lambda: value.flatten()[:1],
        lambda: torch.cat((value, value), -1) if value.ndim else value,
    ]
    if value.ndim and value.numel():
        checkpoint.tensors[name] = ways[bend.how % len(ways)]().clone()


def _dtype(checkpoint: Checkpoint, bend: Bend) -> None:
    name = _name(checkpoint.tensors, bend)
    dtype = _DTYPES[bend.how % len(_DTYPES)]
    checkpoint.tensors[name] = checkpoint.tensors[name].to(torch.float32).to(dtype)


def _offsets(checkpoint: Checkpoint, bend: Bend) -> None:
    name = _find(checkpoint.tensors, "d2t") or "d2t"
    rows = checkpoint.tensors.get(name, torch.zeros(5)).numel()
    target = checkpoint.target["vocab_size"]
    draft_ids, random = torch.arange(rows), torch.Generator().manual_seed(bend.where)
    index = bend.where % max(rows, 1)
    one = (draft_ids == index).long()
    old = checkpoint.tensors.get(name, draft_ids * 0).flatten().long()
    ways: list[Callable[[], torch.Tensor]] = [
        lambda: draft_ids * 0,
        lambda: draft_ids,
        lambda: old + draft_ids,
        lambda: draft_ids.flip(0) - draft_ids,
        lambda: torch.randperm(max(target, rows), generator=random)[:rows] - draft_ids,
        lambda: old + one * target,
        lambda: old - one * (rows + 1),
        lambda: old + one,
        lambda: old * 0 + torch.iinfo(torch.int64).max,
        lambda: old * 0 + torch.iinfo(torch.int64).min,
        lambda: (old + 0.5).float(),
        lambda: old.float().masked_fill(one.bool(), torch.nan),
        lambda: old.bfloat16(),
    ]
    checkpoint.tensors[name] = ways[bend.how % len(ways)]()


def _mask(checkpoint: Checkpoint, bend: Bend) -> None:
    name = _find(checkpoint.tensors, "t2d") or "t2d"
    old = checkpoint.tensors.get(name, torch.ones(checkpoint.target["vocab_size"]))
    old = old.flatten()
    flipped = old.bool().clone()
    if len(flipped):
        flipped[bend.where % len(flipped)] ^= True
    ways: list[Callable[[], torch.Tensor]] = [
        lambda: flipped,
        lambda: torch.ones_like(old).bool(),
        lambda: torch.zeros_like(old).bool(),
        lambda: old[:-1],
        lambda: torch.cat((old, old[:3])),
        lambda: old.to(torch.uint8),
        lambda: old.to(torch.int64) * 2,
        lambda: old.to(torch.float32) - 0.5,
        lambda: old[None],
    ]
    checkpoint.tensors[name] = ways[bend.how % len(ways)]()


def _key(checkpoint: Checkpoint, bend: Bend) -> None:
    if bend.value is ...:
        checkpoint.config.pop(bend.how, None)
    else:
        checkpoint.config[bend.how] = bend.value


_BENDS: dict[str, Callable[[Checkpoint, Bend], None]] = {
    "drop": _drop,
    "copy": _copy,
    "rename": _rename,
    "extra": _extra,
    "shape": _shape,
    "dtype": _dtype,
    "offsets": _offsets,
    "mask": _mask,
    "key": _key,
}

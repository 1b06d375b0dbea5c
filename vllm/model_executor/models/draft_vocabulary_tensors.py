# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""Reading `d2t` (offsets) and `t2d` (mask), and what is said when they are wrong.

Pure torch, no vLLM; arithmetic stays on the device of the tensor under test. Refusals
are `ValueError`s that name the tensor, what was found, what is allowed and what to do.
"""

import torch

from .draft_vocabulary_sizes import CheckpointTensor, VocabularySizes

_INTEGER_DTYPES = frozenset(
    {
        torch.int8,
        torch.int16,
        torch.int32,
        torch.int64,
        torch.uint8,
        torch.uint16,
        torch.uint32,
    }
)


def absolute_ids(offsets: torch.Tensor) -> torch.Tensor:
    """Target ids `[D]` int64 of the draft ids `0..D-1`, from offsets `[D]`."""
    return torch.arange(len(offsets), device=offsets.device) + offsets


def check_offsets(sizes: VocabularySizes, d2t: CheckpointTensor) -> torch.Tensor:
    """Return `d2t` as int64 offsets `[D]` that map one-to-one into `[0, T)`.

    Raises:
        ValueError: wrong shape or dtype, a draft id mapped outside the target's
            vocabulary, or two draft ids mapped to one target id.
    """
    name, tensor = d2t
    if tensor.ndim != 1 or len(tensor) != sizes.draft:
        raise ValueError(
            f"{name} has shape {list(tensor.shape)}, but {sizes.size_source()}. {name} "
            f"must have shape [{sizes.draft}]; set draft_vocab_size in the draft's "
            "config to the rows of its lm_head, or re-export the draft."
        )
    offsets = _as_integers(d2t)
    if sizes.draft > sizes.target:
        if offsets.any():
            raise ValueError(
                f"{name} is not zero although draft_vocab_size {sizes.draft} exceeds "
                f"the target's vocabulary {sizes.target}: such a map cannot be "
                f"one-to-one. Drop {name} from the checkpoint or set it to zeros."
            )
        return offsets
    _check_range(sizes, name, offsets)
    _check_unique(name, absolute_ids(offsets))
    return offsets


def _as_integers(d2t: CheckpointTensor) -> torch.Tensor:
    name, tensor = d2t
    if tensor.dtype in _INTEGER_DTYPES:
        return tensor.to(torch.int64)
    if tensor.dtype not in (torch.float32, torch.float64):
        raise ValueError(
            f"{name} has dtype {tensor.dtype}, which cannot hold offsets exactly. "
            f"Re-export {name} as int64."
        )
    fractional = (~tensor.isfinite() | (tensor != tensor.trunc())).nonzero()
    if len(fractional):
        index = int(fractional[0])
        raise ValueError(
            f"{name}[{index}] is {tensor[index].item()}, not an integer. {name} must "
            "hold offsets (target id - draft id); re-export it as int64."
        )
    return tensor.to(torch.int64)


def _check_range(sizes: VocabularySizes, name: str, offsets: torch.Tensor) -> None:
    draft_ids = torch.arange(sizes.draft, device=offsets.device)
    # Bounds moved to the offsets' side, so that no offset, however wild, overflows.
    outside = (offsets < -draft_ids) | (offsets >= sizes.target - draft_ids)
    if not outside.any():
        return
    draft_id = int(outside.nonzero()[0])
    target_id = draft_id + int(offsets[draft_id])
    looks_absolute = (
        bool((offsets.diff() > 0).all())
        and int(offsets[0]) >= 0
        and int(offsets[-1]) < sizes.target
    )
    hint = (
        f" The values of {name} increase within the target's vocabulary: they look "
        "like absolute ids."
        if looks_absolute
        else ""
    )
    raise ValueError(
        f"{name}[{draft_id}] maps draft id {draft_id} to target id {target_id}, "
        f"outside the target vocabulary [0, {sizes.target}). {name} must hold offsets "
        f"(target id - draft id); re-export the draft.{hint}"
    )


def _check_unique(name: str, target_ids: torch.Tensor) -> None:
    in_order, draft_ids = target_ids.sort(stable=True)
    repeated = (in_order.diff() == 0).nonzero()
    if len(repeated):
        place = int(repeated[0])
        first, second = int(draft_ids[place]), int(draft_ids[place + 1])
        raise ValueError(
            f"{name} maps draft ids {first} and {second} both to target id "
            f"{int(in_order[place])}. {name} must be one-to-one; re-export the draft."
        )


def check_mask_shape(sizes: VocabularySizes, t2d: CheckpointTensor) -> None:
    """Check that `t2d` is a mask over the target's ids, or over `C` as exporters do.

    By shape alone, so that a file of holes is refused before its values fill memory.

    Raises:
        ValueError: naming the shape and the lengths that are allowed.
    """
    name, mask = t2d
    if mask.ndim != 1:
        raise ValueError(
            f"{name} has shape {list(mask.shape)}. It must have one dimension, a mask "
            "over the target's ids; re-export the draft."
        )
    if len(mask) not in (sizes.target, sizes.embedded):
        raise ValueError(
            f"{name} has {len(mask)} entries, but the target's vocabulary is "
            f"{sizes.target} and vocab_size {sizes.embedded} in the draft's config. It "
            "must have an entry for each id of one of them; re-export the draft."
        )


def _marked_ids(sizes: VocabularySizes, t2d: CheckpointTensor) -> torch.Tensor:
    check_mask_shape(sizes, t2d)
    name, mask = t2d
    if mask.dtype != torch.bool:
        mask = mask.to(torch.float64)  # torch compares not all dtypes
        odd = ((mask != 0) & (mask != 1)).nonzero()
        if len(odd):
            index = int(odd[0])
            raise ValueError(
                f"{name}[{index}] is {mask[index].item():g}. {name} must be bool, or "
                "hold 0 and 1 only; re-export the draft."
            )
    return mask.nonzero().flatten()


def offsets_from_mask(sizes: VocabularySizes, t2d: CheckpointTensor) -> torch.Tensor:
    """Rebuild offsets `[D]` from a mask that marks exactly `D` target ids.

    Raises:
        ValueError: the mask marks another number of ids, or ids that are none of
            the target's.
    """
    marked = _marked_ids(sizes, t2d)
    if len(marked) != sizes.draft:
        raise ValueError(
            f"d2t is missing and {t2d.name} marks {len(marked)} target ids, but "
            f"{sizes.size_source()}. Without d2t, t2d must mark exactly "
            f"{sizes.draft} ids; re-export the draft with d2t."
        )
    if int(marked[-1]) >= sizes.target:
        raise ValueError(
            f"{t2d.name} marks target id {int(marked[-1])}, outside the target "
            f"vocabulary [0, {sizes.target}). Re-export the draft for this target."
        )
    return marked - torch.arange(sizes.draft, device=marked.device)


def check_mask(
    sizes: VocabularySizes,
    t2d: CheckpointTensor,
    d2t_name: str,
    target_ids: torch.Tensor,
) -> None:
    """Check that `t2d` marks the mapped target ids `[D]` and nothing else.

    Raises:
        ValueError: naming the first target id on which mask and map disagree.
    """
    marked = set(_marked_ids(sizes, t2d).tolist())
    disagreement = sorted(marked ^ set(target_ids.tolist()))
    if disagreement:
        target_id = disagreement[0]
        verb = "marks" if target_id in marked else "does not mark"
        raise ValueError(
            f"{t2d.name} {verb} target id {target_id}, against {d2t_name}. t2d must be "
            f"true exactly at the ids that d2t maps to; re-export the draft, or drop "
            f"{t2d.name} if {d2t_name} is right."
        )

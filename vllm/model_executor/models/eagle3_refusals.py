# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""What is said about checkpoint tensors that do not fit the draft.

`ValueError`s in the checkpoint's own spelling that say what was found, what is allowed
and, where a config key would make the tensor fit, which.
"""

import re
from collections.abc import Callable, Mapping

import torch
from torch import nn

from .draft_vocabulary import CheckpointTensor
from .eagle3_aux_states import IDS
from .eagle3_checkpoint import Eagle3Checkpoint, canonical_name, is_norm_bias
from .eagle3_config import Eagle3DraftConfig
from .eagle3_slots import TRUNK, WeightSlot

# Tensors that a key of the config decides on -> that key.
_KEYS = (
    (re.compile(r"input_norm\..*"), "norm_before_fc"),
    (re.compile(r"fc_norm\..*"), "fc_norm"),
)
_LATENT_BIAS = re.compile(r".*self_attn\.(?:q_a|q_b|q|kv_a|kv_b)_proj\w*\.bias")
# Which tensors no key makes a place for, and why.
_NO_PLACE: tuple[tuple[Callable[[str], object], str], ...] = (
    (is_norm_bias, "In vLLM norms have no bias"),
    (_LATENT_BIAS.fullmatch, "In vLLM latent attention has no such bias"),
)


def refuse_names(
    model: nn.Module,
    draft: Eagle3DraftConfig,
    checkpoint: Eagle3Checkpoint,
    unknown: list[str],
    missing: list[str],
) -> None:
    """Refuse a load with tensors too many or too few.

    Args:
        unknown: checkpoint names that the model has no place for.
        missing: canonical names that the model needs.

    Raises:
        ValueError: if there are any, listing exactly these.
    """
    kind = type(model).__name__
    sentences = []
    if missing:
        spelled = ", ".join(checkpoint.spell(name) for name in missing)
        sentences.append(
            f"The draft checkpoint lacks {spelled}. {kind} has no other source for "
            f"them; re-export the draft, or {_missing_remedy(missing)}."
        )
    if unknown:
        sentences.append(
            f"The draft checkpoint holds {', '.join(unknown)}, which {kind} has no "
            f"place for. {_unknown_remedy(draft, unknown)}."
        )
    if sentences:
        raise ValueError(" ".join(sentences))


def check_slot(
    draft: Eagle3DraftConfig,
    slots: Mapping[str, WeightSlot],
    weights: Mapping[str, CheckpointTensor],
    name: str,
) -> None:
    """Check that the tensor `name` is the only one for its place, and fits it.

    Raises:
        ValueError: naming the tensor, its shape and the one that the config asks for.
    """
    slot, found = slots.get(name), weights[name]
    if slot is None:
        return
    if slot.parameter != name and slot.parameter in weights:
        raise ValueError(
            f"The draft checkpoint holds {found.name} and "
            f"{weights[slot.parameter].name}, a part and the whole of one tensor. Keep "
            "one of them."
        )
    shape = tuple(found.tensor.shape)
    if slot.shape is not None and not _has_shape(found.tensor, slot.shape):
        raise ValueError(
            f"{found.name} has shape {list(shape)}, but the draft's config asks for "
            f"{list(slot.shape) or 'one number'}.{_shape_hint(draft, name, shape)} "
            "Correct the config, or re-export the draft."
        )


def _has_shape(tensor: torch.Tensor, shape: tuple[int, ...]) -> bool:
    if not shape:  # one number
        return tensor.numel() == 1
    return tuple(tensor.shape) == shape


def _missing_remedy(missing: list[str]) -> str:
    """Name the keys that ask for what is missing."""
    keys = _keys_of(missing)
    if not keys:
        return "correct the config that asks for them"
    found = " and ".join(f"{key}, which is true," for key in keys)
    return f"set {found} to false in the draft's config"


def _unknown_remedy(draft: Eagle3DraftConfig, unknown: list[str]) -> str:
    """Name the keys that would make a place, as far as they are not set."""
    names = [canonical_name(name) for name in unknown]
    keys = _keys_of(names)
    already = {"norm_before_fc": draft.norm_before_fc, "fc_norm": draft.fc_norm}
    lacking = [f"{key}: true" for key in keys if not already[key]]
    if lacking:
        return f"Set {', '.join(lacking)} in the draft's config"
    if "fc_norm" in keys:
        return (
            f"fc_norm is one norm for each of {draft.aux.count} auxiliary hidden "
            f"states, as the config {_aux_source(draft)}; correct {IDS} in it"
        )
    for matches, reason in _NO_PLACE:
        if any(map(matches, names)):
            return f"{reason}; re-export the draft without it"
    return "Remove them from the checkpoint if the draft does not need them"


def _keys_of(names: list[str]) -> list[str]:
    return [
        key for pattern, key in _KEYS if any(pattern.fullmatch(name) for name in names)
    ]


def _shape_hint(draft: Eagle3DraftConfig, name: str, shape: tuple[int, ...]) -> str:
    """Which keys the expected shape comes from."""
    layer, part = draft.layer, name.split(".")[-2]
    width = draft.target_hidden_size
    if name == f"{TRUNK}fc.weight" and len(shape) == 2 and not shape[1] % width:
        return (
            f" It reads {shape[1] // width} auxiliary hidden states of {width}; the "
            f"config {_aux_source(draft)}. {IDS} must list those that the draft was "
            "trained on, and num_aux_hidden_states, where set, their number."
        )
    if part in ("q_proj", "k_proj", "v_proj", "qkv_proj"):
        return (
            f" num_attention_heads is {layer.num_heads}, num_key_value_heads "
            f"{layer.num_kv_heads} and head_dim {layer.head_dim or 'not set'}."
        )
    if part in ("gate_proj", "up_proj", "gate_up_proj", "down_proj"):
        return f" intermediate_size is {layer.intermediate_size}."
    return ""


def _aux_source(draft: Eagle3DraftConfig) -> str:
    if draft.aux.source is None:
        return f"names none, for which vLLM takes {list(draft.aux.layer_ids)}"
    return f"names {list(draft.aux.layer_ids)} ({draft.aux.source})"

# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""What is said about checkpoint tensors that do not fit the draft.

`ValueError`s in the checkpoint's own spelling that say what was found, what is allowed
and, where a config key would make the tensor fit, which.
"""

import re
from collections.abc import Mapping

from torch import nn

from .draft_vocabulary import CheckpointTensor
from .eagle3_checkpoint import Eagle3Checkpoint, canonical_name
from .eagle3_config import Eagle3DraftConfig
from .eagle3_slots import WeightSlot

TRUNK = "model."

# What a draft's config lacks when a tensor has no place in the model.
_HINTS = (
    (re.compile(r"input_norm\."), "norm_before_fc: true"),
    (re.compile(r"fc_norm\."), "fc_norm: true"),
    (re.compile(r".*self_attn\..*\.bias"), "attention_bias: true"),
    (re.compile(r".*mlp\..*\.bias"), "mlp_bias: true"),
    (re.compile(r".*\.[qk]_norm\."), "architectures: [Eagle3Qwen3ForCausalLM]"),
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
            "them; re-export the draft, or correct the config that asks for them."
        )
    if unknown:
        sentences.append(
            f"The draft checkpoint holds {', '.join(unknown)}, which {kind} has no "
            f"place for.{_hint(draft, unknown)}"
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
    if slot.shape is not None and tuple(found.tensor.shape) != slot.shape:
        raise ValueError(
            f"{found.name} has shape {list(found.tensor.shape)}, but the draft's "
            f"config asks for {list(slot.shape)}.{_shape_hint(draft, name)} Correct "
            "the config, or re-export the draft."
        )


def _hint(draft: Eagle3DraftConfig, unknown: list[str]) -> str:
    """Name the keys that would make a place, as far as they are not set."""
    already = {
        "norm_before_fc": draft.norm_before_fc,
        "fc_norm": draft.fc_norm,
        "attention_bias": draft.layer.o_bias,
        "mlp_bias": draft.layer.mlp_bias,
    }
    keys = [
        key
        for pattern, key in _HINTS
        if not already.get(key.partition(":")[0])
        and any(pattern.match(canonical_name(name)) for name in unknown)
    ]
    if not keys:
        return " Remove them from the checkpoint if the draft does not need them."
    return f" The draft's config may lack {', '.join(keys)}."


def _shape_hint(draft: Eagle3DraftConfig, name: str) -> str:
    if name != "model.fc.weight":
        return ""
    return (
        f" It reads {draft.num_aux_hidden_states} auxiliary hidden states of "
        f"{draft.target_hidden_size}; num_aux_hidden_states or "
        "eagle_aux_hidden_state_layer_ids sets their number."
    )

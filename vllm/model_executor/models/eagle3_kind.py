# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""What kind of model a checkpoint is, judged by its tensors.

A language model, an EAGLE-1 head or a draft of another family would be refused for a
dozen names at once; here one sentence says what it is and what to do.
"""

import re

from .eagle3_checkpoint import Eagle3Checkpoint

_HIDDEN_NORM = "layers.0.hidden_norm.weight"
_PROJECTIONS = re.compile(
    r"layers\.0\.self_attn\.(?:q|qkv|q_a|kv_a_proj_with_mqa|fused_qkv_a)(?:_proj)?\."
    r"weight"
)
# What only one family's attention has -> the class that serves it. First match counts.
_FAMILIES = (
    (
        re.compile(r"layers\.\d+\.self_attn\.kv_a_\w+\..*"),
        "Eagle3DeepseekV2ForCausalLM",
    ),
    (re.compile(r"layers\.\d+\.self_attn\.[qk]_norm\..*"), "Eagle3Qwen3ForCausalLM"),
    (re.compile(r"layers\.\d+\.self_attn\.k_proj\..*"), "Eagle3LlamaForCausalLM"),
)


def check_kind(checkpoint: Eagle3Checkpoint, serving: type, hidden_size: int) -> None:
    """Check that the class `serving` is made for the kind of model in `checkpoint`.

    Args:
        hidden_size: of the draft.

    Raises:
        ValueError: the checkpoint is no EAGLE-3 draft, or one of another family.
    """
    if not _reads_embeddings_and_states(checkpoint, hidden_size):
        _refuse_other_models(checkpoint)
    for pattern, family_class in _FAMILIES:
        marks = (
            found.name
            for name, found in checkpoint.weights.items()
            if pattern.fullmatch(name)
        )
        mark = next(marks, None)
        if mark is not None:
            _check_family(mark, family_class, serving)
            return


def _check_family(mark: str, family_class: str, serving: type) -> None:
    names = [base.__name__ for base in serving.__mro__]
    known = [name for _, name in _FAMILIES if name in names]
    if known and family_class not in known:
        raise ValueError(
            f"The draft checkpoint holds {mark}, as drafts of {family_class} do, but "
            f"its config leads to {known[0]}. Set architectures: [{family_class}] in "
            "the draft's config."
        )


def _reads_embeddings_and_states(
    checkpoint: Eagle3Checkpoint, hidden_size: int
) -> bool:
    """EAGLE-3's mark: the first layer attends over two hidden sizes of features.

    True where that cannot be told, as with packed weights.
    """
    if _HIDDEN_NORM in checkpoint.weights:
        return True
    widths = {
        found.tensor.shape[-1]
        for name, found in checkpoint.weights.items()
        if _PROJECTIONS.fullmatch(name) and found.tensor.ndim == 2
    }
    return widths != {hidden_size}


def _refuse_other_models(checkpoint: Eagle3Checkpoint) -> None:
    if not checkpoint.has_module("fc"):
        raise ValueError(
            "The draft is a plain language model: its checkpoint has neither fc nor "
            "hidden_norm, and its first layer reads no hidden states of a target. Give "
            'an EAGLE-3 draft, or serve this model with "method": "draft_model".'
        )
    if not checkpoint.has_module("norm"):
        raise ValueError(
            "The draft is an EAGLE-1 head: its checkpoint has fc, but neither "
            "hidden_norm nor a final norm. Give an EAGLE-3 draft, or serve this one "
            'with "method": "eagle".'
        )

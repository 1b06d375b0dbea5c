# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""Parallel drafting: the mask token, and what stands for states not yet known.

P-EAGLE (arXiv 2602.01469, vLLM PR #32887) proposes all tokens from one pass. Positions
behind the first hold a mask token, and `mask_hidden` for hidden states.
"""

from typing import Any

import torch
from torch import nn
from vllm.logger import init_logger

from .draft_vocabulary import CheckpointTensor, VocabularySizes
from .eagle3_config_keys import ConfigKeys
from .eagle3_slots import deliver

logger = init_logger(__name__)

# In the order in which vLLM's runners ask.
_TOKEN_KEYS = ("mask_token_id", "dspark_noise_token_id", "pard_token", "ptd_token_id")


def mask_token_id(keys: ConfigKeys) -> int:
    """The id that the keys agree on.

    Raises:
        ValueError: no key, several that differ, or a value that is no id.
    """
    dflash: Any = keys.top("dflash_config", {})
    found = {"dflash_config.mask_token_id": dflash.get("mask_token_id")}
    found |= {key: keys.top(key) for key in _TOKEN_KEYS}
    found = {key: value for key, value in found.items() if value is not None}
    if not found:
        raise ValueError(
            "parallel_drafting is on, but the draft's config names no mask token. Set "
            "mask_token_id, pard_token or ptd_token_id to the one that the draft was "
            "trained with, or turn parallel_drafting off."
        )
    for key, value in found.items():
        if type(value) is not int or value < 0:
            raise ValueError(
                f"{key} is {value!r} in the draft's config. It must be a token id, an "
                "integer of 0 or more."
            )
    if len(set(found.values())) > 1:
        listed = ", ".join(f"{key} says {value}" for key, value in found.items())
        raise ValueError(
            f"The draft's config contradicts itself on the mask token: {listed}. Keep "
            "the one that the draft was trained with."
        )
    return next(iter(found.values()))


def check_mask_token(
    token_id: int, sizes: VocabularySizes, *, own_embedding: bool
) -> None:
    """Check that the mask token can be embedded.

    Raises:
        ValueError: naming the id and the rows that there are.
    """
    rows = sizes.embedded if own_embedding else sizes.target
    if token_id < rows:
        return
    whose = "the draft's own" if own_embedding else "taken from the target"
    raise ValueError(
        f"The mask token of the draft's config is {token_id}, but embed_tokens is "
        f"{whose} and has {rows} rows, so ids 0 to {rows - 1} are allowed. Correct the "
        "key, or re-export the draft with embed_tokens of its own that has the row."
    )


def check_mask_hidden(found: CheckpointTensor | None, width: int) -> None:
    """Check what a first load brings, of any shape, against `width` features.

    Raises:
        ValueError: it is missing, has another number of elements, or holds no
            floating-point numbers.
    """
    if found is None:
        raise ValueError(
            "mask_hidden is missing although parallel_drafting is on. Re-export the "
            "draft with mask_hidden, or turn parallel_drafting off."
        )
    if found.tensor.numel() != width:
        raise ValueError(
            f"{found.name} has {found.tensor.numel()} elements, but the draft's config "
            f"asks for {width}, the width of the hidden states that the target hands "
            "over for one token. Correct the config, or re-export the draft."
        )
    if not found.tensor.is_floating_point():
        raise ValueError(
            f"{found.name} is {found.tensor.dtype}, but stands in for hidden states, "
            "so it must be in floating point. Re-export the draft."
        )


def log_unused_mask(found: CheckpointTensor | None) -> None:
    """Say that a draft trained for parallel drafting is served without it."""
    if found is not None:
        logger.warning(
            "The draft checkpoint holds %s, as drafts that were trained for parallel "
            "drafting do, but parallel_drafting is off, so few of its tokens may be "
            'accepted. Set "parallel_drafting": true in --speculative-config.',
            found.name,
        )


class MaskHidden(nn.Module):
    """P-EAGLE's stand-in for hidden states not yet known, `[1, features]`.

    A module of its own, so that vLLM can reload it by itself.
    """

    hidden: torch.Tensor

    def __init__(self, features: int) -> None:
        super().__init__()
        self.register_buffer("hidden", torch.zeros(1, features), persistent=False)

    def load(self, hidden: torch.Tensor) -> None:
        """Take `features` values of any shape."""
        deliver(self.hidden, hidden.reshape(1, -1))

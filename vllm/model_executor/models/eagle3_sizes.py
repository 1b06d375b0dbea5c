# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""Sizes in a draft's config, held to what a model can have before one is built.

vLLM allocates what the config says, and reads the checkpoint after that. Without a
limit, a slip of a key or a file made to do harm takes up all memory, or ends in an
allocator's error that names no key.
"""

from collections.abc import Iterator, Mapping
from itertools import product
from math import prod
from typing import Any

from .eagle3_config_keys import positive_integer

# Not a key, but the rows of embeddings that a draft shares with its target.
TARGET_VOCABULARY = "the target's vocabulary"

REQUIRED_SIZES = (
    "vocab_size",
    "hidden_size",
    "intermediate_size",
    "num_attention_heads",
    "num_hidden_layers",
)
SIZES = (
    *REQUIRED_SIZES,
    "num_key_value_heads",
    "head_dim",
    "max_position_embeddings",
    "q_lora_rank",
    "kv_lora_rank",
    "qk_nope_head_dim",
    "qk_rope_head_dim",
    "v_head_dim",
)
_HEAD_DIMS = ("head_dim", "qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim")
_RANKS = ("q_lora_rank", "kv_lora_rank")
# Keys whose product is the number of values of a weight, or less.
_WEIGHTS: tuple[tuple[str, ...], ...] = (
    ("vocab_size", "hidden_size"),
    (TARGET_VOCABULARY, "hidden_size"),
    ("intermediate_size", "hidden_size"),
    ("num_attention_heads", "hidden_size"),
    *product(("num_attention_heads",), _HEAD_DIMS, ("hidden_size", *_RANKS)),
)

# Far beyond any model: four times an embedding of 262208 ids in 16384 dimensions.
_MOST_VALUES = 2**34
# The longest context of a published model is 10485760 tokens.
MOST_POSITIONS = 2**24
# transformers makes a list with an entry for each of them.
_MOST_LAYERS = 100_000


def check_sizes(config: Mapping[str, Any]) -> None:
    """Check the sizes that weights and layers are made from.

    Args:
        config: keys of a draft's config; null and absent ones are left to others.

    Raises:
        ValueError: a size is no positive integer, or no model has so much.
    """
    sizes = dict(_stated(config))
    for keys in _WEIGHTS:
        _check_weight({key: sizes[key] for key in keys if key in sizes}, len(keys))
    for key, most in (
        ("num_hidden_layers", _MOST_LAYERS),
        ("max_position_embeddings", MOST_POSITIONS),
    ):
        if sizes.get(key, 0) > most:
            raise ValueError(
                f"{key} is {sizes[key]} in the draft's config, and no draft has more "
                f"than {most}. Correct the key."
            )


def _stated(config: Mapping[str, Any]) -> Iterator[tuple[str, int]]:
    for key in (*SIZES, TARGET_VOCABULARY):
        if config.get(key) is not None:
            yield key, positive_integer(key, config[key])


def _check_weight(sizes: Mapping[str, int], dimensions: int) -> None:
    if len(sizes) < dimensions or prod(sizes.values()) <= _MOST_VALUES:
        return
    # The largest first: it is the wrong one.
    listed = sorted(sizes.items(), key=lambda size: -size[1])
    factors = " and ".join(f"{key} {size}" for key, size in listed)
    raise ValueError(
        f"{factors} make a weight of more than {_MOST_VALUES} values, and no draft has "
        "one as large. Correct these keys of the draft's config."
    )

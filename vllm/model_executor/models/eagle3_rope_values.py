# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""What each rope parameter of a draft's config may be, whatever its `rope_type`."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from .eagle3_config_keys import finite_number, positive_integer, positive_number

FACTOR = "factor"
ORIGINAL = "original_max_position_embeddings"
SECTION = "mrope_section"
SHARE = "partial_rotary_factor"


def check_value(name: str, path: str, value: Any) -> None:
    """Check one parameter; a null is an absent one.

    Args:
        name: of the parameter.
        path: where the config has it, for the message.

    Raises:
        ValueError: vLLM computes nothing, or NaN, from the value.
    """
    if value is not None:
        CHECKS.get(name, _plain)(path, value)


def _above_zero(path: str, value: Any) -> None:
    positive_number(path, value, 1)
    finite_number(path, value)


def _share(path: str, value: Any) -> None:
    if type(value) in (int, float) and 0 < value <= 1:
        return
    raise ValueError(
        f"{path} is {value!r} in the draft's config. It must be a number above 0 and "
        "at most 1."
    )


def _factors(path: str, value: Any) -> None:
    if not _is_list(value) or not value or None in value:
        raise ValueError(
            f"{path} is {value!r} in the draft's config. It must be a list of numbers "
            "above 0."
        )
    for index, factor in enumerate(value):
        _above_zero(f"{path}[{index}]", factor)


def _section(path: str, value: Any) -> None:
    counts = [v for v in value if type(v) is int and v >= 0] if _is_list(value) else []
    if len(counts) != 3 or len(value) != 3:
        raise ValueError(
            f"{path} is {value!r} in the draft's config. It must be a list of three "
            "integers, none below 0."
        )


def _absent(path: str, value: Any) -> None:
    """Its coefficients are parameters, and no draft's layers have them."""
    if value not in (False,):
        raise ValueError(
            f"{path} is {value!r} in the draft's config, but vLLM's draft layers do "
            "not compute that. It must be false, or be absent."
        )


def _plain(path: str, value: Any) -> None:
    """vLLM keeps tables by all parameters, and no draft has more than one table."""
    inner = value if _is_list(value) else [value]
    if any(isinstance(item, Mapping) or _is_list(item) for item in inner):
        raise ValueError(
            f"{path} is {value!r} in the draft's config. Rope parameters must be "
            "numbers, names or lists of them, and hold for all layers."
        )


def _is_list(value: Any) -> bool:
    return isinstance(value, list | tuple)


# `_check_stretch` says more about an infinite one.
_stretching = partial(positive_number, default=1)

CHECKS: dict[str, Callable[[str, Any], Any]] = {
    "alpha": _above_zero,
    "attention_factor": _above_zero,
    "beta_fast": _above_zero,
    "beta_slow": _above_zero,
    FACTOR: _stretching,
    "high_freq_factor": _above_zero,
    "long_factor": _factors,
    "long_mscale": _above_zero,
    "low_freq_factor": _above_zero,
    "max_trained_positions": _above_zero,
    "mixed_b": finite_number,
    SECTION: _section,
    "mscale": finite_number,
    "mscale_all_dim": finite_number,
    ORIGINAL: _stretching,
    SHARE: _share,
    "rope_dim": positive_integer,
    "rope_theta": _above_zero,
    "short_factor": _factors,
    "short_mscale": _above_zero,
    "use_fope": _absent,
}

# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""Reading single keys of a draft's config, and what is said about a bad value."""

import sys
from collections.abc import Mapping
from typing import Any, NoReturn


class ConfigKeys:
    """Keys at the top level of a draft's config and in its `eagle_config`.

    A null is an absent key.

    Args:
        hf_config: the draft's config as vLLM read it.
    """

    def __init__(self, hf_config: Any) -> None:
        self._hf_config = hf_config
        self.eagle: Mapping[str, Any] = self.top("eagle_config", {})
        if not isinstance(self.eagle, Mapping):
            raise ValueError(
                f"eagle_config is {self.eagle!r} in the draft's config. It must be an "
                "object with keys of its own, or be absent."
            )

    def top(self, key: str, default: Any = None) -> Any:
        value = getattr(self._hf_config, key, None)
        return default if value is None else value

    def nested(self, key: str, default: Any = None) -> Any:
        value = self.eagle.get(key)
        return default if value is None else value

    def required(self, key: str) -> Any:
        value = self.top(key)
        if value is None:
            refuse_unset(key)
        return value

    def count(self, key: str, default: int | None = None) -> int | None:
        """A positive integer; `default` where the key is absent."""
        value = self.top(key)
        return default if value is None else positive_integer(key, value)

    def required_count(self, key: str) -> int:
        return positive_integer(key, self.required(key))

    def number(self, key: str, default: float) -> float:
        return finite_number(key, self.top(key, default))

    def flag(self, key: str, default: bool = False) -> bool:
        """True or false at the top level; the string "false" is neither."""
        return _as_flag(key, self.top(key, default))

    def nested_or_top_flag(self, key: str, default: bool = False) -> bool:
        """`eagle_config` decides, as in vLLM's runners; else the top level."""
        if self.nested(key) is not None:
            return _as_flag(f"eagle_config.{key}", self.nested(key))
        return self.flag(key, default)


def positive_integer(key: str, value: Any) -> int:
    if type(value) is int and value > 0:
        return value
    raise ValueError(
        f"{key} is {value!r} in the draft's config. It must be a positive integer."
    )


def positive_number(key: str, value: Any, default: float) -> float:
    """A number above zero; `default` for a null."""
    if value is None:
        return default
    if type(value) in (int, float) and value > 0:
        return value
    raise ValueError(
        f"{key} is {value!r} in the draft's config. It must be a number above 0."
    )


def finite_number(key: str, value: Any) -> float:
    """A number that a float can hold; JSON has longer integers, and infinity."""
    if type(value) in (int, float) and abs(value) <= sys.float_info.max:
        return float(value)
    raise ValueError(
        f"{key} is {value!r} in the draft's config. It must be a finite number."
    )


def refuse_unset(key: str) -> NoReturn:
    raise ValueError(
        f"{key} is not set in the draft's config. An EAGLE-3 draft needs it; add the "
        "value that the draft was trained with."
    )


def _as_flag(key: str, value: Any) -> bool:
    if value in (False, True):
        return bool(value)
    raise ValueError(
        f"{key} is {value!r} in the draft's config. It must be true or false."
    )

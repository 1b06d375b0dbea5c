# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""How each quantisation format lists the modules of a draft.

The formats differ in the keys that hold their lists and in what an entry may be: a
name, a regular expression, a wildcard, or a part of a name. The lists are replaced by
literal names, as vLLM asks for them, so that no entry is read in two ways.
"""

import re
from collections.abc import Iterable
from fnmatch import fnmatchcase
from typing import Any

import regex
from vllm.model_executor.layers.quantization import QuantizationConfig

from .eagle3_quant_names import DraftModules
from .utils import WeightsMapper

_PATTERN = "re:"
# A published pattern takes microseconds.
_SECONDS_PER_MATCH = 1.0

# The key by which a format leaves modules out, as exporters write it.
_IGNORE_KEYS = {
    "compressed-tensors": "ignore",
    "fp8": "ignored_layers",
    "quark": "exclude",
    "modelopt": "exclude_modules",
}


def ignore_key(config: QuantizationConfig) -> str:
    """The config's key that lists what is not quantised, for messages."""
    return _IGNORE_KEYS.get(_format(config), "quantization_config")


def resolve_names(config: QuantizationConfig, modules: DraftModules) -> None:
    """Put the names that vLLM asks for in place of those in the checkpoint.

    Raises:
        ValueError: an entry is no name or pattern, or names a part of what vLLM
            computes as one matrix.
    """
    resolve = {
        "compressed-tensors": _resolve_compressed_tensors,
        "fp8": _resolve_fp8,
        "modelopt": _resolve_modelopt,
        "quark": _resolve_quark,
    }.get(_format(config), _rename)
    resolve(config, modules)


def quantise_head(config: QuantizationConfig) -> None:
    """Let targets that mean any linear module mean the head too.

    In a checkpoint the head is one; vLLM's head is no subclass of its linear layers.
    """
    if _format(config) == "compressed-tensors":
        schemes = config.target_scheme_map  # type: ignore[attr-defined]
        if "Linear" in schemes:
            schemes.setdefault("ParallelLMHead", schemes["Linear"])


def names_head(config: QuantizationConfig) -> bool:
    """Whether the format quantises a head only where the config asks for it."""
    return _format(config) == "compressed-tensors"


def _format(config: QuantizationConfig) -> str:
    name = config.get_name()
    return "modelopt" if name.startswith("modelopt") else name


def _resolve_compressed_tensors(config: Any, modules: DraftModules) -> None:
    ignored = modules.choose(_marked(config.ignore, "ignore"), _is_named, key="ignore")
    named: dict[str, Any] = {}
    classes: dict[str, Any] = {}
    for target, scheme in config.target_scheme_map.items():
        is_path = "." in target or _is_pattern(target) or modules.has(target)
        (named if is_path else classes)[target] = scheme
    chosen = modules.choose(
        named, _is_named, default=classes.get("Linear"), key="config_groups"
    )
    config.ignore = list(ignored)
    config.target_scheme_map = chosen | classes


def _resolve_fp8(config: Any, modules: DraftModules) -> None:
    key = "ignored_layers"
    ignored = _marked(config.ignored_layers, key)
    config.ignored_layers = list(modules.choose(ignored, _is_within, key=key))


def _resolve_modelopt(config: Any, modules: DraftModules) -> None:
    key = "exclude_modules"
    excluded = _marked(config.exclude_modules, key)
    config.exclude_modules = list(modules.choose(excluded, _is_within, key=key))
    key = "quantized_layers"  # of mixed precision alone
    if hasattr(config, key):
        config.quantized_layers = modules.choose(
            config.quantized_layers, _is_named, key=key
        )


def _resolve_quark(config: Any, modules: DraftModules) -> None:
    keys = dict(config.quant_config)
    excluded = _marked(keys.get("exclude"), "exclude")
    keys["exclude"] = list(modules.choose(excluded, _is_within, key="exclude"))
    keys["layer_quant_config"] = modules.choose(
        keys.get("layer_quant_config") or {},
        _is_named,
        default=keys.get("global_quant_config"),
        key="layer_quant_config",
    )
    keys["layer_type_quant_config"] = keys.get("layer_type_quant_config") or {}
    config.quant_config = keys


def _rename(config: QuantizationConfig, modules: DraftModules) -> None:
    """Formats without published drafts: literal names alone."""
    config.apply_vllm_mapper(
        WeightsMapper(
            orig_to_new_regex={
                re.compile(f"^(?:{'|'.join(map(re.escape, spellings))})$"): served
                for spellings, served in modules.literal_names()
            }
        )
    )


def _marked(entries: Any, key: str) -> dict[str, bool]:
    entries = [] if entries is None else entries
    if not isinstance(entries, Iterable) or isinstance(entries, str | bytes):
        raise ValueError(
            f"{key} in the draft's quantization_config is {entries!r}. It must be a "
            "list of module names."
        )
    for entry in entries:
        if not isinstance(entry, str):
            raise ValueError(
                f"{key} in the draft's quantization_config holds {entry!r}. Its "
                "entries must be module names, as text."
            )
    return dict.fromkeys(entries, True)


def _is_pattern(entry: str) -> bool:
    return entry.startswith(_PATTERN)


def _is_named(entry: str, name: str) -> bool:
    """A whole name, a wildcard for one, or a regular expression for its start."""
    if _is_pattern(entry):
        return _begins(entry.removeprefix(_PATTERN), name)
    return entry == name or ("*" in entry and fnmatchcase(name, entry))


def _is_within(entry: str, name: str) -> bool:
    """As `_is_named`, or whole components of a name, such as `self_attn`."""
    return _is_named(entry, name) or f".{entry}." in f".{name}."


def _begins(pattern: str, name: str) -> bool:
    try:
        return regex.match(pattern, name, timeout=_SECONDS_PER_MATCH) is not None
    except (regex.error, TimeoutError) as error:
        raise ValueError(
            f"The pattern {pattern!r} in the draft's quantization_config cannot be "
            f"used: {error}. Correct it."
        ) from error

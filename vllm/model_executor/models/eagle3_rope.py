# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""Rope parameters of a draft's config, held to what tables can be made from.

vLLM and transformers look a key up where they need it, and end in a `KeyError` that
names no file, or a `TypeError` that names no key; some values make a table of NaN.
"""

from collections.abc import Iterator, Mapping
from math import ceil
from typing import Any, NoReturn

from .eagle3_rope_values import CHECKS, FACTOR, ORIGINAL, SECTION, SHARE, check_value
from .eagle3_sizes import MOST_POSITIONS

_PARAMETERS = ("rope_parameters", "rope_scaling")
# What transformers fills in for a draft that states none.
_THETA = 10_000.0
# With its older names, which vLLM reads too.
_SHARES = (SHARE, "rotary_pct", "rotary_emb_fraction")

# Without these, vLLM or transformers cannot go on.
_NEEDED: dict[str, tuple[str, ...]] = {
    "bailing_mrope": (SECTION,),
    "deepseek_llama_scaling": (FACTOR, ORIGINAL),
    "deepseek_yarn": (FACTOR, ORIGINAL),
    "default": (),
    "dynamic": (FACTOR,),
    "linear": (FACTOR,),
    "llama3": (FACTOR, "low_freq_factor", "high_freq_factor"),
    "longrope": ("short_factor", "long_factor"),
    "mrope": (SECTION,),
    "ntk": (FACTOR,),
    "openpangu": (SECTION, "mrope_interleaved"),
    "proportional": (),
    "su": ("short_factor", "long_factor"),
    "telechat3-yarn": (FACTOR,),
    "yarn": (FACTOR,),
}
# transformers fills these in where they are absent, but computes with a null.
_FILLED: dict[str, tuple[str, ...]] = {
    "llama3": (ORIGINAL,),
    "longrope": (ORIGINAL, SHARE),
    "su": (ORIGINAL, SHARE),
    "telechat3-yarn": (ORIGINAL,),
    "yarn": (ORIGINAL,),
}
# Types that divide by the logarithm of a parameter.
_LOGARITHMS = {
    "deepseek_llama_scaling": "rope_theta",
    "deepseek_yarn": "rope_theta",
    "longrope": ORIGINAL,
    "su": ORIGINAL,
    "telechat3-yarn": "rope_theta",
    "yarn": "rope_theta",
}
_OF_DEEPSEEK = frozenset({"deepseek_llama_scaling", "deepseek_yarn"})
# Their table ends where stretching ends, whatever `max_position_embeddings` says.
_ENDING = _OF_DEEPSEEK | {"yarn"}
# By which vLLM lengthens it where positions are those of images too.
_MULTIMODAL = 4
# vLLM's latent attention computes YaRN for every type but `default`.
LATENT_TYPES = frozenset({"default", "yarn"}) | _OF_DEEPSEEK
# Grouped-query attention hands heads over side by side; DeepSeek's take them apart.
GROUPED_TYPES = frozenset(_NEEDED) - _OF_DEEPSEEK


def check_rope(config: Mapping[str, Any]) -> None:
    """Check what a draft's config says about rope.

    Args:
        config: keys of a draft's config, or of its file, where transformers has not
            filled anything in. A null is an absent key, where transformers allows it.

    Raises:
        ValueError: no table comes of it, or one of NaN or beyond reason.
    """
    check_value("rope_theta", "rope_theta", config.get("rope_theta"))
    for key in _SHARES:
        check_value(SHARE, key, config.get(key))
    for key in _PARAMETERS:
        rope = config.get(key)
        if isinstance(rope, Mapping):
            _check_parameters(key, rope, config)
        elif rope:
            raise ValueError(
                f"{key} is {rope!r} in the draft's config. It must be an object with a "
                "rope_type, or be absent."
            )


def check_rope_fits(
    rope: Mapping[str, Any], types: frozenset[str], head_size: int
) -> None:
    """Check rope beside the attention whose queries and keys it turns.

    Args:
        rope: as `settle_rope` returns it.
        types: those that the attention can be served with.
        head_size: features of a head that can be turned.

    Raises:
        ValueError: another type, or lists that are not as long as the frequencies.
    """
    _check_type("rope_parameters", rope, types)
    turned = rope.get("rope_dim") or int(head_size * rope.get(SHARE, 1))
    if turned > head_size:
        raise ValueError(
            f"rope_parameters.rope_dim is {turned} in the draft's config, more than "
            f"the {head_size} features of a head. Correct the key, or remove it."
        )
    for name in ("short_factor", "long_factor"):
        factors = rope.get(name, (1,))
        # One factor counts for all frequencies.
        if len(factors) not in (1, turned // 2):
            _refuse_for_size(name, f"{len(factors)} factors", turned)
    section = rope.get(SECTION)
    if section is not None and sum(section) != turned // 2:
        _refuse_for_size(SECTION, f"{sum(section)} frequencies", turned)


def check_rope_reaches(
    rope: Mapping[str, Any], max_position_embeddings: int, longest: int
) -> None:
    """Check that the table has a row for each position that the draft sees.

    vLLM raises a draft's `max_position_embeddings` to what the target serves, but some
    tables are not made by it, and from 0.33.0 on it is not raised for all types; later
    positions would read what lies behind the table.

    Args:
        rope: as `settle_rope` returns it.
        max_position_embeddings: of the draft, as vLLM left it.
        longest: tokens of the longest request that the draft sees.

    Raises:
        ValueError: the table ends before.
    """
    kind = rope.get("rope_type", "default")
    if kind not in _ENDING:
        rows, made_of = max_position_embeddings, "max_position_embeddings"
    elif ORIGINAL not in rope:
        _refuse_missing(f"rope_parameters.{ORIGINAL}", kind)
    else:
        multiple = _MULTIMODAL if SECTION in rope else 1
        rows = ceil(rope[ORIGINAL] * multiple * rope[FACTOR])
        made_of = f"{ORIGINAL} times {FACTOR}"
    if rows < longest:
        raise ValueError(
            f"The draft's rope table ends after {rows} positions, {made_of} of its "
            f"config, but requests may be as long as {longest}. Start with "
            f"--max-model-len {rows} or less, or correct the config."
        )


def settle_rope(hf_config: Any) -> Mapping[str, Any]:
    """Write parameters as vLLM's layers read them, and return them.

    Exporters write null for keys that they do not use, and vLLM computes with it; an
    integer in place of a factor is a list to its linear rope.
    """
    rope = getattr(hf_config, "rope_parameters", None) or {}
    unset = {name for name in CHECKS if rope.get(name, 1) is None}
    settled = {name: value for name, value in rope.items() if name not in unset}
    if "rope_theta" in unset:
        settled["rope_theta"] = _THETA
    if rope.get("rope_type") == "linear":
        settled[FACTOR] = float(rope[FACTOR])
    if settled:
        # vLLM's latent attention renames the type in there.
        hf_config.rope_parameters = dict(settled)
    return settled


def _check_parameters(
    key: str, rope: Mapping[str, Any], config: Mapping[str, Any]
) -> None:
    kind = _check_type(key, rope, frozenset(_NEEDED))
    for path in _missing(key, rope, config, kind):
        _refuse_missing(path, kind)
    for name, value in rope.items():
        check_value(name, f"{key}.{name}", value)
    if kind in _FILLED:
        check_value(ORIGINAL, ORIGINAL, config.get(ORIGINAL))
    if (divisor := _LOGARITHMS.get(kind)) is not None:
        value = rope.get(divisor, config.get(divisor))
        if value is not None and value <= 1:
            raise ValueError(
                f"{divisor} is {value!r} in the draft's config. Rope of type {kind} "
                "needs a number above 1."
            )
    if kind == "linear" and rope[FACTOR] < 1:
        raise ValueError(
            f"{key}.{FACTOR} is {rope[FACTOR]!r} in the draft's config. Rope of type "
            "linear needs a number of at least 1: with less, its table ends early."
        )
    _check_stretch(key, rope, config.get("max_position_embeddings"))


def _check_type(key: str, rope: Mapping[str, Any], types: frozenset[str]) -> str:
    name = "rope_type" if "rope_type" in rope else "type"
    kind = rope.get(name, "default")
    if isinstance(kind, str) and kind in types:
        return kind
    raise ValueError(
        f"{key}.{name} is {kind!r} in the draft's config. Its layers can be served "
        f"with one of {', '.join(sorted(types))}. Correct the key if the draft was "
        "trained with one of them."
    )


def _missing(
    key: str, rope: Mapping[str, Any], config: Mapping[str, Any], kind: str
) -> Iterator[str]:
    for name in _NEEDED[kind]:
        # transformers asks for the key even where vLLM takes alpha.
        by_alpha = kind == "dynamic" and rope.get("alpha") is not None and name in rope
        if rope.get(name) is None and not by_alpha:
            yield f"{key}.{name}"
    for name in _FILLED.get(kind, ()):
        if rope.get(name, 1) is None:
            yield f"{key}.{name}"
    # At the top level of a file it counts more.
    if kind in _FILLED and config.get(ORIGINAL, 1) is None:
        yield ORIGINAL


def _refuse_missing(path: str, kind: str) -> NoReturn:
    raise ValueError(
        f"{path} is not set in the draft's config, but rope of type {kind} needs it. "
        "Add the value that the draft was trained with."
    )


def _check_stretch(key: str, rope: Mapping[str, Any], positions: int | None) -> None:
    """vLLM's rope table has a row for each position, stretched by some types."""
    before = rope.get(ORIGINAL) or positions or 1
    by = rope.get(FACTOR) or 1
    if before > MOST_POSITIONS / by:
        raise ValueError(
            f"{key} in the draft's config stretches {before} positions by a factor of "
            f"{by}, and no draft has more than {MOST_POSITIONS}. Correct {ORIGINAL} "
            f"or {FACTOR}."
        )


def _refuse_for_size(name: str, found: str, turned: int) -> None:
    raise ValueError(
        f"rope_parameters.{name} has {found} in the draft's config, but {turned} "
        f"features of a head are turned, in {turned // 2} frequencies. Correct the "
        "key, or the size of the heads."
    )

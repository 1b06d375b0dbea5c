# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""What a draft's file may say about rope, and the sentence on what it may not."""

import pytest
from vllm.model_executor.models.eagle3_rope import (
    GROUPED_TYPES,
    LATENT_TYPES,
    check_rope,
)

from tests.support.ropes import ABOVE_ZERO, ALL, LONG, NAN, ORIGINAL, SHARE
from vllm_eagle3 import config_file

check_file = config_file.check_file
HUGE = 2**40


def refusal(config):
    with pytest.raises(ValueError) as refused:
        check_file(config)
    return str(refused.value)


def missing(path, kind):
    return (
        f"{path} is not set in the draft's config, but rope of type {kind} needs it. "
        "Add the value that the draft was trained with."
    )


def test_the_exemption_of_a_null_factor_is_for_alpha_alone():
    rope = {"rope_type": "dynamic", "factor": None}
    assert refusal({"rope_scaling": rope}) == missing("rope_scaling.factor", "dynamic")
    rope = {"rope_type": "linear", "factor": None, "alpha": 2.0}
    assert refusal({"rope_scaling": rope}) == missing("rope_scaling.factor", "linear")
    # transformers asks for the key all the same.
    rope = {"rope_type": "dynamic", "alpha": 2.0}
    assert refusal({"rope_scaling": rope}) == missing("rope_scaling.factor", "dynamic")


NEEDED = [
    ("linear", "factor"),
    ("dynamic", "factor"),
    ("ntk", "factor"),
    ("yarn", "factor"),
    ("telechat3-yarn", "factor"),
    ("deepseek_yarn", "factor"),
    ("deepseek_yarn", ORIGINAL),
    ("deepseek_llama_scaling", ORIGINAL),
    ("llama3", "factor"),
    ("llama3", "low_freq_factor"),
    ("llama3", "high_freq_factor"),
    ("longrope", "short_factor"),
    ("longrope", "long_factor"),
    ("su", "long_factor"),
    ("mrope", "mrope_section"),
    ("bailing_mrope", "mrope_section"),
    ("openpangu", "mrope_section"),
    ("openpangu", "mrope_interleaved"),
]
FILLED = [
    (kind, ORIGINAL) for kind in ("yarn", "telechat3-yarn", "llama3", "longrope", "su")
]


@pytest.mark.parametrize("key", ["rope_parameters", "rope_scaling"])
@pytest.mark.parametrize(("kind", "name"), NEEDED)
def test_what_a_type_needs_is_set(key, kind, name):
    rope = ALL | {"rope_type": kind}
    check_file({key: rope})
    assert refusal({key: rope | {name: None}}) == missing(f"{key}.{name}", kind)
    del rope[name]
    assert refusal({key: rope}) == missing(f"{key}.{name}", kind)
    rope["type"] = rope.pop("rope_type")
    assert refusal({key: rope}) == missing(f"{key}.{name}", kind)


@pytest.mark.parametrize(("kind", "name"), FILLED)
def test_what_transformers_fills_in_is_not_null(kind, name):
    """A file may leave it out, here or at the top level, where it counts more."""
    rope = ALL | {"rope_type": kind}
    assert refusal({"rope_scaling": rope | {name: None}}) == (
        missing(f"rope_scaling.{name}", kind)
    )
    assert refusal({"rope_scaling": rope, name: None}) == missing(name, kind)
    assert refusal({"rope_scaling": rope, name: "4"}) == (
        f"{name} is '4' in the draft's config. It must be a number above 0."
    )
    del rope[name]
    check_file({"rope_scaling": rope})
    check_file({"rope_scaling": rope, name: 512})
    check_file({"rope_scaling": {"rope_type": "linear", "factor": 2.0}, name: None})


@pytest.mark.parametrize("kind", ["longrope", "su"])
def test_a_null_share_of_long_tables_is_refused(kind):
    """transformers computes with it."""
    rope = ALL | {"rope_type": kind}
    check_file({"rope_scaling": rope})
    assert refusal({"rope_scaling": rope | {SHARE: None}}) == (
        missing(f"rope_scaling.{SHARE}", kind)
    )


@pytest.mark.parametrize("name", ABOVE_ZERO)
@pytest.mark.parametrize("value", [0, -1.0, "4", True, NAN, [1.0], {}])
def test_numbers_are_above_zero(name, value):
    assert refusal({"rope_scaling": {name: value}}) == (
        f"rope_scaling.{name} is {value!r} in the draft's config. It must be a number "
        "above 0."
    )


@pytest.mark.parametrize("name", sorted({*ABOVE_ZERO} - {"factor", ORIGINAL}))
@pytest.mark.parametrize("value", [float("inf"), pytest.param(10**400, id="huge")])
def test_numbers_are_finite(name, value):
    assert refusal({"rope_scaling": {name: value}}) == (
        f"rope_scaling.{name} is {value!r} in the draft's config. It must be a finite "
        "number."
    )


@pytest.mark.parametrize("name", ["mixed_b", "mscale", "mscale_all_dim"])
@pytest.mark.parametrize("value", [NAN, "1", True, [1], {}])
def test_others_may_be_zero(name, value):
    check_file({"rope_scaling": {name: 0}})
    assert refusal({"rope_scaling": {name: value}}) == (
        f"rope_scaling.{name} is {value!r} in the draft's config. It must be a finite "
        "number."
    )


@pytest.mark.parametrize("value", [0, -5, "10000", True, NAN, [1e4]])
def test_rope_theta_is_a_number_above_zero(value):
    """Its powers are angles, and would be NaN or end in a TypeError."""
    for key in ("rope_theta", "rope_parameters.rope_theta"):
        outer, _, inner = key.partition(".")
        assert refusal({outer: {inner: value} if inner else value}) == (
            f"{key} is {value!r} in the draft's config. It must be a number above 0."
        )


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("yarn", "rope_theta"),
        ("telechat3-yarn", "rope_theta"),
        ("deepseek_yarn", "rope_theta"),
        ("deepseek_llama_scaling", "rope_theta"),
        ("longrope", ORIGINAL),
        ("su", ORIGINAL),
    ],
)
def test_a_logarithm_that_divides_is_not_zero(kind, name):
    rope = ALL | {"rope_type": kind}
    del rope[ORIGINAL]
    if kind.startswith("deepseek"):
        rope[ORIGINAL] = 512
    sentence = (
        f"{name} is 1 in the draft's config. Rope of type {kind} needs a number above "
        "1."
    )
    assert refusal({"rope_scaling": rope, name: 1}) == sentence
    assert refusal({"rope_scaling": rope | {name: 1}}) == sentence
    check_file({"rope_scaling": {"rope_theta": 1}})


@pytest.mark.parametrize("key", ["rope_parameters", "rope_scaling"])
@pytest.mark.parametrize("factor", [0.5, 0.999])
def test_linear_rope_stretches(key, factor):
    """Its table has a row for each position times the factor."""
    assert refusal({key: {"rope_type": "linear", "factor": factor}}) == (
        f"{key}.factor is {factor} in the draft's config. Rope of type linear needs a "
        "number of at least 1: with less, its table ends early."
    )
    check_file({key: {"rope_type": "linear", "factor": 1}})
    check_file({key: {"rope_type": "dynamic", "factor": factor}})


SHARES = (
    SHARE,
    "rotary_pct",
    "rotary_emb_fraction",
    "rope_parameters.partial_rotary_factor",
)


@pytest.mark.parametrize("key", SHARES)
@pytest.mark.parametrize("value", [0, -0.5, 1.5, NAN, "0.5", True, [0.5], {}])
def test_a_share_of_a_head_is_turned(key, value):
    outer, _, inner = key.partition(".")
    assert refusal({outer: {inner: value} if inner else value}) == (
        f"{key} is {value!r} in the draft's config. It must be a number above 0 and at "
        "most 1."
    )


@pytest.mark.parametrize("value", [0, -2, 16.0, "16", True, [16], {}])
def test_turned_features_are_counted(value):
    sentence = refusal({"rope_scaling": {"rope_dim": value}})
    assert sentence.startswith(f"rope_scaling.rope_dim is {value!r} in the draft's")
    assert "positive integer" in sentence


@pytest.mark.parametrize("name", ["short_factor", "long_factor"])
@pytest.mark.parametrize("value", [0, 1.0, "4", True, [], {}, [None]])
def test_factors_are_a_list(name, value):
    assert refusal({"rope_scaling": LONG | {name: value}}) == (
        f"rope_scaling.{name} is {value!r} in the draft's config. It must be a list of "
        "numbers above 0."
    )


@pytest.mark.parametrize("value", [0, -1.0, "4", True, NAN, [1.0]])
def test_each_factor_is_above_zero(value):
    assert refusal({"rope_scaling": LONG | {"long_factor": [1.0, value]}}) == (
        f"rope_scaling.long_factor[1] is {value!r} in the draft's config. It must be a "
        "number above 0."
    )


@pytest.mark.parametrize(
    "value",
    [
        0,
        -1,
        "466",
        True,
        [],
        [16],
        [8, 8],
        [4.0, 6, 6],
        [-4, 10, 10],
        [4, 6, 6, "1"],
        {},
    ],
)
def test_multimodal_rope_has_three_sections(value):
    assert refusal({"rope_scaling": {"mrope_section": value}}) == (
        f"rope_scaling.mrope_section is {value!r} in the draft's config. It must be a "
        "list of three integers, none below 0."
    )


@pytest.mark.parametrize("value", [1, True, [1], {}])
def test_fourier_positions_are_refused(value):
    assert refusal({"rope_parameters": {"use_fope": value}}) == (
        f"rope_parameters.use_fope is {value!r} in the draft's config, but vLLM's "
        "draft layers do not compute that. It must be false, or be absent."
    )


@pytest.mark.parametrize("value", [{}, {"rope_type": "default"}, [[1]], [{}]])
def test_parameters_hold_for_all_layers(value):
    assert refusal({"rope_parameters": {"full_attention": value}}) == (
        f"rope_parameters.full_attention is {value!r} in the draft's config. Rope "
        "parameters must be numbers, names or lists of them, and hold for all layers."
    )


@pytest.mark.parametrize("key", ["rope_parameters", "rope_scaling"])
@pytest.mark.parametrize("value", [5, "yarn", [1], True])
def test_parameters_are_an_object(key, value):
    assert refusal({key: value}) == (
        f"{key} is {value!r} in the draft's config. It must be an object with a "
        "rope_type, or be absent."
    )
    check_file({key: None})


@pytest.mark.parametrize("name", ["rope_type", "type"])
@pytest.mark.parametrize("value", ["axial", "mllama4", "", None, 3, ["yarn"], {}])
def test_an_unknown_type_is_refused_with_those_that_are_served(name, value):
    listed = ", ".join(sorted(GROUPED_TYPES | LATENT_TYPES))
    assert refusal({"rope_scaling": {name: value, "factor": 2.0}}) == (
        f"rope_scaling.{name} is {value!r} in the draft's config. Its layers can be "
        f"served with one of {listed}. Correct the key if the draft was trained with "
        "one of them."
    )


def test_parameters_that_speculators_nests_count_too():
    nested = {"transformer_layer_config": {"rope_parameters": {"rope_type": "ntk"}}}
    assert refusal(nested) == missing("rope_parameters.factor", "ntk")


@pytest.mark.parametrize("key", ["rope_parameters", "rope_scaling"])
@pytest.mark.parametrize(
    "rope",
    [
        {ORIGINAL: 4096, "factor": 1e12},
        {ORIGINAL: HUGE, "factor": 1.0},
        {ORIGINAL: 10**400, "factor": 0.5},
        {"factor": float("inf")},
        {"factor": 10_000},
    ],
)
def test_a_rope_table_beyond_all_drafts_is_refused(key, rope):
    config = {"max_position_embeddings": 4096, key: rope}
    found = refusal(config)
    assert found.startswith(f"{key} in the draft's config stretches ")
    assert f"Correct {ORIGINAL} or factor." in found


def test_other_keys_are_nobodys_business():
    check_rope({"rope_parameters": {"mine": "yes", "other": [1, 2], "third": None}})

# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""Of rope parameters comes a table of numbers, or a sentence that names the key."""

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from vllm.config import set_current_vllm_config
from vllm.model_executor.model_loader.utils import initialize_model
from vllm.model_executor.models.eagle3_config import Eagle3DraftConfig
from vllm.model_executor.models.eagle3_rope import (
    GROUPED_TYPES,
    LATENT_TYPES,
    check_rope,
)

from tests.check.conftest import check_folders, errors
from tests.support.checkpoints import (
    FAMILIES,
    draft_config,
    target_config,
    write_checkpoint,
)
from tests.support.drafts import draft_environment, engine_config, own_rope_tables
from vllm_eagle3 import config_file

check_file = config_file.check_file
HUGE = 2**40
NAN = float("nan")
ORIGINAL = "original_max_position_embeddings"
SHARE = "partial_rotary_factor"
# Of heads with 32 features that are turned, two by two.
LISTS = {"short_factor": [1.0] * 16, "long_factor": [2.0] * 16, ORIGINAL: 512}
SECTION = {"mrope_section": [4, 6, 6]}
YARN = {"rope_type": "yarn", "factor": 4.0, ORIGINAL: 512}
LLAMA3 = {
    "rope_type": "llama3",
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    ORIGINAL: 512,
}
LONG = {"rope_type": "longrope", **LISTS}
# Complete parameters of every type that grouped-query attention is served with.
COMPLETE = [
    {},
    {"rope_type": "default", "partial_rotary_factor": 0.5},
    {"rope_type": "default", "rope_dim": 16},
    {"rope_type": "default", "use_fope": False, "another": ["key", 1]},
    {"mrope_interleaved": True, **SECTION},
    {"rope_type": "linear", "factor": 2.0},
    {"rope_type": "linear", "factor": 3},
    {"rope_type": "dynamic", "factor": 2.0, "max_trained_positions": 512},
    {"rope_type": "dynamic", "factor": None, "alpha": 2.0},
    {"rope_type": "ntk", "factor": 2.0, "mixed_b": 0.5},
    YARN | {"attention_factor": 1.0, "beta_fast": 32, "beta_slow": 1},
    YARN | {"mscale": 1.0, "mscale_all_dim": 0},
    YARN | SECTION,
    {"type": "yarn", "factor": 4},
    {"rope_type": "telechat3-yarn", "factor": 4.0},
    LLAMA3,
    LONG | {"factor": 4.0, "short_mscale": 1.0, "long_mscale": 1.0},
    LONG | {"short_factor": [1.0]},
    {"type": "su", **LISTS},
    {"type": "mrope", **SECTION},
    {"rope_type": "bailing_mrope", **SECTION},
    {"rope_type": "openpangu", "mrope_interleaved": True, **SECTION},
    {"rope_type": "proportional", "partial_rotary_factor": 0.5},
]


def refusal(config):
    with pytest.raises(ValueError) as refused:
        check_file(config)
    return str(refused.value)


def table_of(family, folder, **changes):
    """The rope table of a draft that is built and not loaded."""
    folder = write_checkpoint(folder, draft_config(family, **changes), {})
    engine = engine_config(folder)
    model_config = engine.speculative_config.draft_model_config
    with (
        draft_environment(engine),
        set_current_vllm_config(engine),
        own_rope_tables(),
    ):
        model = initialize_model(engine, model_config=model_config)
    tables = (b for n, b in model.named_buffers() if n.endswith("cos_sin_cache"))
    return next(tables)


@pytest.mark.parametrize("rope", COMPLETE)
@pytest.mark.parametrize("family", ["llama", "qwen3"])
def test_every_type_is_served(tmp_path, family, rope):
    table = table_of(family, tmp_path / "draft", rope_scaling=rope)
    assert table.isfinite().all()
    assert len(table) >= 512


def test_every_type_is_complete_above():
    stated = {r.get("rope_type", r.get("type", "default")) for r in COMPLETE}
    assert stated == GROUPED_TYPES


@pytest.mark.parametrize("kind", sorted(LATENT_TYPES))
def test_latent_attention_is_served_with_yarn(tmp_path, kind):
    rope = YARN | {"rope_type": kind, "mscale": 1.0, "mscale_all_dim": 1.0}
    table = table_of("deepseek", tmp_path / "draft", rope_scaling=rope)
    assert table.isfinite().all()
    assert len(table) == 2048


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize(
    "key",
    ["beta_fast", "beta_slow", "mscale", "mscale_all_dim", "partial_rotary_factor"],
)
def test_a_null_is_an_absent_parameter(tmp_path, family, key):
    with_null = table_of(family, tmp_path / "null", rope_scaling=YARN | {key: None})
    without = table_of(family, tmp_path / "none", rope_scaling=YARN)
    assert torch.equal(with_null, without)


def test_the_exemption_of_a_null_factor_is_for_alpha_alone():
    rope = {"rope_type": "dynamic", "factor": None}
    assert refusal({"rope_scaling": rope}) == missing("rope_scaling.factor", "dynamic")
    # transformers asks for the key all the same.
    rope = {"rope_type": "dynamic", "alpha": 2.0}
    assert refusal({"rope_scaling": rope}) == missing("rope_scaling.factor", "dynamic")


def missing(path, kind):
    return (
        f"{path} is not set in the draft's config, but rope of type {kind} needs it. "
        "Add the value that the draft was trained with."
    )


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
FILLED = [(kind, ORIGINAL) for kind in ("yarn", "llama3", "longrope", "su")]
ALL = {**LLAMA3, **LISTS, **SECTION, "mrope_interleaved": True}


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


ABOVE_ZERO = (
    "alpha",
    "attention_factor",
    "beta_fast",
    "beta_slow",
    "factor",
    "high_freq_factor",
    "long_mscale",
    "low_freq_factor",
    "max_trained_positions",
    ORIGINAL,
    "rope_theta",
    "short_mscale",
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
    "value", [0, -1, "466", True, [], [16], [8, 8], [4.0, 6, 6], [-4, 10, 10], {}]
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


# Each ended in another place: in transformers, in vLLM's tables or in its attention.
REFUSED = [
    ("llama", {"rope_type": "linear"}, "rope_scaling.factor is not set in"),
    ("llama", {"rope_type": "ntk"}, "rope_scaling.factor is not set in"),
    ("llama", LLAMA3 | {"low_freq_factor": None}, "rope_scaling.low_freq_factor is"),
    ("llama", YARN | {"beta_fast": 0}, "rope_scaling.beta_fast is 0 in the"),
    ("llama", YARN | {"beta_slow": {}}, "rope_scaling.beta_slow is {} in the"),
    ("llama", {"full_attention": {}}, "rope_scaling.full_attention is {} in the"),
    ("llama", {"rope_type": "axial"}, "rope_scaling.rope_type is 'axial' in the"),
    ("qwen3", YARN | {ORIGINAL: None}, f"rope_scaling.{ORIGINAL} is not set in"),
    ("qwen3", LONG | {"short_factor": None}, "rope_scaling.short_factor is not"),
    ("qwen3", {"mrope_section": 4}, "rope_scaling.mrope_section is 4 in the"),
    ("deepseek", {"rope_type": "yarn"}, "rope_scaling.factor is not set in"),
    ("deepseek", {"type": "yarn", ORIGINAL: 512}, "rope_scaling.factor is not set"),
    ("deepseek", YARN | {"factor": "4"}, "rope_scaling.factor is '4' in the"),
    ("deepseek", YARN | {"mscale": [1]}, "rope_scaling.mscale is [1] in the"),
    ("deepseek", LONG, "rope_parameters.rope_type is 'longrope' in the"),
    ("deepseek", LLAMA3, "rope_parameters.rope_type is 'llama3' in the"),
    ("llama", YARN | {"rope_type": "deepseek_yarn"}, "rope_parameters.rope_type is "),
    ("llama", LONG | {"long_factor": [1.0] * 15}, "rope_parameters.long_factor has"),
    ("qwen3", {"mrope_section": [4, 6, 7]}, "rope_parameters.mrope_section has"),
    ("llama", {"rope_dim": 64}, "rope_parameters.rope_dim is 64 in the draft's"),
]


@pytest.mark.parametrize(("family", "rope", "begin"), REFUSED)
def test_a_server_and_the_check_say_so(make_draft, tmp_path, family, rope, begin):
    draft = make_draft(family, rope_scaling=rope)
    sentence = draft.refusal()
    assert begin in sentence
    target = write_checkpoint(tmp_path / "target", target_config(), {})
    assert errors(check_folders(draft.folder, target))[0] in sentence


@pytest.mark.parametrize(
    ("family", "head", "turned"), [("llama", {}, 32), ("qwen3", {"head_dim": 64}, 64)]
)
def test_lists_are_as_long_as_the_frequencies(make_draft, family, head, turned):
    rope = LONG | {"short_factor": [1.0] * 5, "long_factor": [1.0] * 5}
    assert make_draft(family, rope_scaling=rope, **head).refusal() == (
        "rope_parameters.short_factor has 5 factors in the draft's config, but "
        f"{turned} features of a head are turned, in {turned // 2} frequencies. "
        "Correct the key, or the size of the heads."
    )
    rope = {"mrope_section": [4, 4, 4], "partial_rotary_factor": 0.5}
    assert make_draft(family, rope_scaling=rope, **head).refusal() == (
        "rope_parameters.mrope_section has 12 frequencies in the draft's config, but "
        f"{turned // 2} features of a head are turned, in {turned // 4} frequencies. "
        "Correct the key, or the size of the heads."
    )


def test_latent_attention_names_its_types(make_draft):
    sentence = make_draft("deepseek", rope_scaling=LLAMA3).refusal()
    assert sentence == (
        "rope_parameters.rope_type is 'llama3' in the draft's config. Its layers can "
        "be served with one of deepseek_llama_scaling, deepseek_yarn, default, yarn. "
        "Correct the key if the draft was trained with one of them."
    )


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize(
    ("name", "value"), [("factor", None), ("factor", 0), ("beta_fast", "32")]
)
def test_a_draft_is_not_built_either(make_draft, family, name, value):
    """Where parameters come from elsewhere than the file."""
    engine = engine_config(make_draft(family, rope_scaling=YARN).write())
    hf_config = engine.speculative_config.draft_model_config.hf_config
    hf_config.rope_parameters = hf_config.rope_parameters | {name: value}
    with pytest.raises(ValueError, match=f"^rope_parameters.{name} is "):
        Eagle3DraftConfig.resolve(engine)


def test_a_null_of_rope_theta_is_what_transformers_fills_in(make_draft):
    draft = make_draft("llama", rope_parameters=YARN | {"rope_theta": None}).load()
    assert draft.draft.hf_config.rope_parameters["rope_theta"] == 10_000.0


VALUES = st.sampled_from(
    [None, 0, -1, 0.5, 1, 2, 16, 64, NAN, "4", True, [1.0] * 16, [4, 6, 6], {}]
)
PARAMETERS = st.dictionaries(
    st.sampled_from(sorted({*ABOVE_ZERO, *ALL})), VALUES, max_size=2
)


@pytest.mark.parametrize("family", FAMILIES)
@settings(
    derandomize=True,
    database=None,
    deadline=None,
    max_examples=40,
    suppress_health_check=list(HealthCheck),
)
@given(data=st.data())
def test_anything_is_refused_or_makes_a_table(tmp_path_factory, family, data):
    complete, kinds = (
        (YARN, LATENT_TYPES) if family == "deepseek" else (ALL, GROUPED_TYPES)
    )
    kind = data.draw(st.sampled_from(sorted(kinds)))
    stated = complete | {"rope_type": kind} | data.draw(PARAMETERS)
    folder = tmp_path_factory.mktemp("draft")
    try:
        table = table_of(family, folder / "draft", rope_scaling=stated)
    except ValueError as refused:
        assert "the draft's config" in str(refused), stated
        return
    assert table.isfinite().all(), stated


def test_other_keys_are_nobodys_business():
    check_rope({"rope_parameters": {"mine": "yes", "other": [1, 2], "third": None}})

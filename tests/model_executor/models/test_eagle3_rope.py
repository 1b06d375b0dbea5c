# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""Of rope parameters comes a table of numbers, or a sentence that names the key."""

import re

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from vllm.config import set_current_vllm_config
from vllm.model_executor.model_loader.utils import initialize_model
from vllm.model_executor.models.eagle3_config import Eagle3DraftConfig
from vllm.model_executor.models.eagle3_rope import GROUPED_TYPES, LATENT_TYPES

from tests.check.conftest import check_folders, errors
from tests.support.checkpoints import (
    FAMILIES,
    draft_config,
    target_config,
    write_checkpoint,
)
from tests.support.drafts import draft_environment, engine_config, own_rope_tables
from tests.support.ropes import (
    ABOVE_ZERO,
    ALL,
    LISTS,
    LLAMA3,
    LONG,
    NAN,
    ORIGINAL,
    SECTION,
    YARN,
)

YARN_TYPE = ("rope_type", "factor", "rope_theta")
SERVED = 512  # tokens of the longest request
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
    table = next(tables)
    assert len(table) >= model.draft.lengths.drafted
    return table


@pytest.mark.parametrize("rope", COMPLETE)
@pytest.mark.parametrize("family", ["llama", "qwen3"])
def test_every_type_is_served(tmp_path, family, rope):
    table = table_of(family, tmp_path / "draft", rope_scaling=rope)
    assert table.isfinite().all()
    assert len(table) >= SERVED


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
    (
        "qwen3",
        YARN | {ORIGINAL: 127},
        "The draft's rope table ends after 508 positions",
    ),
    ("deepseek", YARN | {"factor": 0.9}, "The draft's rope table ends after "),
]


@pytest.mark.parametrize(("family", "rope", "begin"), REFUSED)
def test_a_server_and_the_check_say_so(make_draft, tmp_path, family, rope, begin):
    draft = make_draft(family, rope_scaling=rope)
    sentence = draft.refusal()
    assert begin in sentence
    target = target_config(max_position_embeddings=SERVED)
    target = write_checkpoint(tmp_path / "target", target, {})
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


@pytest.mark.parametrize("family", FAMILIES)
def test_a_table_that_ends_before_the_longest_request_is_refused(make_draft, family):
    """Its later positions would read what lies behind the table."""
    rope = YARN | {ORIGINAL: 100}
    assert make_draft(family, rope_scaling=rope).refusal() == (
        f"The draft's rope table ends after 400 positions, {ORIGINAL} times factor of "
        "its config, but requests may be as long as 512. Start with --max-model-len "
        "400 or less, or correct the config."
    )


@pytest.mark.parametrize(
    ("family", "rope", "shortest"),
    [
        ("llama", YARN, 128),
        ("llama", YARN | {"factor": 1.7}, 301),
        ("qwen3", YARN | SECTION, 32),
        ("llama", YARN | SECTION | {"factor": 1.7}, 76),
        ("deepseek", YARN, 128),
        ("deepseek", YARN | {"rope_type": "deepseek_yarn"}, 128),
    ],
)
def test_a_table_as_long_as_the_longest_request_is_served(
    make_draft, tmp_path, family, rope, shortest
):
    rope = rope | {ORIGINAL: shortest}
    assert len(table_of(family, tmp_path / "draft", rope_scaling=rope)) >= SERVED
    rope = rope | {ORIGINAL: shortest - 1}
    assert "--max-model-len" in make_draft(family, rope_scaling=rope).refusal()


@pytest.mark.parametrize("kind", ["linear", "dynamic", "ntk", "llama3", "longrope"])
@pytest.mark.parametrize("own", [64, 2048])
def test_other_tables_are_as_long_as_what_is_drafted(tmp_path, kind, own):
    rope = ALL | {"rope_type": kind, ORIGINAL: 8}
    changes = {"rope_scaling": rope, "max_position_embeddings": own}
    try:
        table = table_of("llama", tmp_path / "draft", **changes)
    except ValueError as refused:
        # vLLM raises fewer types to what is served from 0.33.0 on.
        assert "ends after 64 positions, max_position_embeddings of" in str(refused)
        assert (kind, own) == ("dynamic", 64)
    else:
        assert len(table) >= min(own, SERVED)


def test_latent_attention_names_its_types(make_draft):
    sentence = make_draft("deepseek", rope_scaling=LLAMA3).refusal()
    assert sentence == (
        "rope_parameters.rope_type is 'llama3' in the draft's config. Its layers can "
        "be served with one of deepseek_llama_scaling, deepseek_yarn, default, yarn. "
        "Correct the key if the draft was trained with one of them."
    )


def test_latent_attention_computes_no_multimodal_rope(make_draft):
    rope = YARN | {"mrope_section": [10, 11, 11]}
    assert make_draft("deepseek", rope_scaling=rope).refusal() == (
        "rope_parameters.mrope_section is [10, 11, 11] in the draft's config, but "
        "vLLM's latent attention computes no multimodal rope. Remove the key if the "
        "draft was trained without."
    )


def test_latent_attention_turns_a_part_of_its_heads(make_draft, tmp_path):
    rope = {"rope_type": "default", "rope_dim": 64}
    assert table_of("deepseek", tmp_path / "draft", rope_scaling=rope).shape[1] == 64
    draft = make_draft("deepseek", rope_scaling=rope | {"rope_dim": 66})
    assert "more than the 64 features of a head" in draft.refusal()


def test_the_config_keeps_the_type_that_was_stated(make_draft):
    """vLLM's latent attention renames it in the config that it is handed."""
    assert make_draft("deepseek", rope_scaling=YARN).load().draft.rope["rope_type"] == (
        "yarn"
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


@pytest.mark.parametrize("family", FAMILIES)
def test_a_table_without_an_end_is_not_built(make_draft, family):
    """Where transformers has filled nothing in."""
    engine = engine_config(make_draft(family, rope_scaling=YARN).write())
    hf_config = engine.speculative_config.draft_model_config.hf_config
    hf_config.rope_parameters = {k: hf_config.rope_parameters[k] for k in YARN_TYPE}
    with pytest.raises(ValueError, match=f"^rope_parameters.{ORIGINAL} is not set in"):
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
        assert re.search("the draft's (config|rope table)", str(refused), re.I), stated
        return
    assert table.isfinite().all(), stated

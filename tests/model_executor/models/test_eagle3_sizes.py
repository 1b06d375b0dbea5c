# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""Sizes that no memory holds are refused before anything is built from them."""

import pytest
from vllm.model_executor.models.eagle3_config import Eagle3DraftConfig
from vllm.model_executor.models.eagle3_sizes import SIZES, check_sizes

from tests.check.conftest import check_folders, errors
from tests.support.checkpoints import (
    FAMILIES,
    TARGET_VOCAB,
    draft_config,
    target_config,
    write_checkpoint,
)
from tests.support.drafts import engine_config
from vllm_eagle3 import config_file

every_family = pytest.mark.parametrize("family", FAMILIES)
check_file = config_file.check_file
HUGE = 2**40
LATENT = ("q_lora_rank", "kv_lora_rank", "qk_nope_head_dim", "v_head_dim")
OF_WEIGHTS = ("vocab_size", "hidden_size", "intermediate_size", "num_attention_heads")
# The largest of their kind, in one config.
GIANT = {
    "vocab_size": 262_208,
    "hidden_size": 16_384,
    "intermediate_size": 53_248,
    "num_attention_heads": 128,
    "num_key_value_heads": 128,
    "head_dim": 512,
    "q_lora_rank": 1536,
    "kv_lora_rank": 512,
    "qk_nope_head_dim": 128,
    "qk_rope_head_dim": 64,
    "v_head_dim": 128,
    "num_hidden_layers": 126,
    "max_position_embeddings": 10_485_760,
    "rope_scaling": {"factor": 64.0, "original_max_position_embeddings": 4096},
}


def refusal(config):
    with pytest.raises(ValueError) as refused:
        check_file(config)
    return str(refused.value)


@pytest.mark.parametrize("key", SIZES)
@pytest.mark.parametrize("value", [0, -1, 1.5, "12", [4], True])
def test_a_size_is_a_positive_integer(key, value):
    assert refusal({key: value}) == (
        f"{key} is {value!r} in the draft's config. It must be a positive integer."
    )


@pytest.mark.parametrize("key", SIZES)
def test_a_null_is_an_absent_key(key):
    if key in (*OF_WEIGHTS, "num_hidden_layers"):
        assert refusal({key: None}).startswith(f"{key} is not set in the draft's conf")
    else:
        check_file({key: None})
    check_file({})


def test_the_largest_sizes_of_real_models_are_allowed():
    check_file(GIANT)


@every_family
@pytest.mark.parametrize("huge", [HUGE, 10**400])
def test_each_size_has_a_limit(family, huge):
    config = draft_config(family)
    # Nothing but the heads of queries, which they must divide, comes of these.
    sizes = [key for key in SIZES if key in config and key != "num_key_value_heads"]
    assert len(sizes) == (11 if family == "deepseek" else 7)
    for key in sizes:
        found = refusal(config | {key: huge})
        assert found.startswith((f"{key} {huge} and ", f"{key} is {huge} in the "))


def test_a_weight_beyond_all_drafts_is_refused():
    assert refusal({"vocab_size": 2**18, "hidden_size": 2**17}) == (
        "vocab_size 262144 and hidden_size 131072 make a weight of more than "
        "17179869184 values, and no draft has one as large. Correct these keys of the "
        "draft's config."
    )
    check_file({"vocab_size": 2**18, "hidden_size": 2**16})


def test_heads_without_a_size_of_their_own_count():
    sizes = {"num_attention_heads": HUGE, "hidden_size": 64}
    assert refusal(sizes).startswith(f"num_attention_heads {HUGE} and hidden_size 64")


def test_more_positions_than_any_model_has_are_refused():
    assert refusal({"max_position_embeddings": 2**24 + 1}) == (
        "max_position_embeddings is 16777217 in the draft's config, and no draft has "
        "more than 16777216. Correct the key."
    )


@pytest.mark.parametrize("value", [0.0, -1e-6, float("nan")])
def test_norms_divide_by_a_number_above_zero(make_draft, value):
    sentence = make_draft("llama", rms_norm_eps=value).refusal()
    assert sentence == (
        f"rms_norm_eps is {value!r} in the draft's config. It must be a number above 0."
    )


@pytest.mark.parametrize("value", [float("nan"), float("inf"), 10**400])
def test_logits_are_scaled_by_a_finite_number(make_draft, value):
    sentence = make_draft("llama", logit_scale=value).refusal()
    assert sentence == (
        f"logit_scale is {value!r} in the draft's config. It must be a finite number."
    )


def test_sizes_that_speculators_nests_count_too():
    nested = {"transformer_layer_config": {"hidden_size": HUGE, "vocab_size": 1000}}
    assert refusal(nested).startswith(f"hidden_size {HUGE} and vocab_size 1000 make")


@every_family
@pytest.mark.parametrize("key", ["hidden_size", "num_attention_heads", "vocab_size"])
@pytest.mark.parametrize("value", [HUGE, 0])
def test_a_server_and_the_check_say_so(make_draft, tmp_path, family, key, value):
    """Before transformers divides by it, or vLLM asks for the memory."""
    draft = make_draft(family, **{key: value})
    sentence = draft.refusal()
    assert sentence.startswith(f"{key} {'is 0' if value == 0 else value}")
    target = write_checkpoint(tmp_path / "target", target_config(), {})
    assert errors(check_folders(draft.folder, target))[0] == sentence


BUILT_FROM = [
    (family, key)
    for family in FAMILIES
    for key in (*OF_WEIGHTS, "max_position_embeddings", *LATENT)
    if family == "deepseek" or key not in LATENT
]


@pytest.mark.parametrize(("family", "key"), BUILT_FROM)
@pytest.mark.parametrize("value", [HUGE, -1])
def test_a_draft_is_not_built_either(make_draft, family, key, value):
    """Where a size comes from elsewhere than the file, as by `--hf-overrides`."""
    engine = engine_config(make_draft(family).write())
    hf_config = engine.speculative_config.draft_model_config.hf_config
    setattr(hf_config, key, value)
    with pytest.raises(ValueError) as refused:
        Eagle3DraftConfig.resolve(engine)
    assert str(refused.value).startswith((f"{key} {value}", f"{key} is {value}"))


def test_embeddings_of_the_target_count():
    sizes = {"hidden_size": 2**30, "vocab_size": 1}
    check_sizes(sizes)
    with pytest.raises(ValueError, match=f"and the target's vocabulary {TARGET_VOCAB}"):
        check_sizes(sizes | {"the target's vocabulary": TARGET_VOCAB})

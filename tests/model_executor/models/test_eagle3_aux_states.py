# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""Which of the target's hidden states a draft reads, and who decides that."""

import logging
from types import SimpleNamespace

import pytest
import torch
from vllm.model_executor.models.eagle3_aux_states import AuxHiddenStates
from vllm.model_executor.models.eagle3_config import Eagle3DraftConfig
from vllm.model_executor.models.eagle3_config_keys import ConfigKeys

from tests.support.checkpoints import FAMILIES, HIDDEN, TARGET_VOCAB
from tests.support.drafts import engine_config

from .conftest import AUX_IDS

LAYERS = 8
every_family = pytest.mark.parametrize("family", FAMILIES)


def resolve(**config):
    return AuxHiddenStates.resolve(ConfigKeys(SimpleNamespace(**config)), LAYERS)


def refusal(**config):
    with pytest.raises(ValueError) as refused:
        resolve(**config)
    return str(refused.value)


NESTED = f"eagle_config.{AUX_IDS}"


@pytest.mark.parametrize(
    ("config", "ids", "source"),
    [
        ({AUX_IDS: [1, 3, 5, 7]}, (1, 3, 5, 7), AUX_IDS),
        ({"eagle_config": {AUX_IDS: [0, 8]}}, (0, 8), NESTED),
        ({AUX_IDS: [1], "eagle_config": {AUX_IDS: [1]}}, (1,), AUX_IDS),
        ({AUX_IDS: None, "eagle_config": {AUX_IDS: [1]}}, (1,), NESTED),
        ({AUX_IDS: [2, 5], "num_aux_hidden_states": 2}, (2, 5), AUX_IDS),
        ({AUX_IDS: [2, 5], "num_aux_layers": 2}, (2, 5), AUX_IDS),
        ({}, (2, 4, 5), None),
        ({AUX_IDS: [], "eagle_config": None}, (2, 4, 5), None),
        ({"num_aux_hidden_states": 3}, (2, 4, 5), None),
    ],
)
def test_ids_come_from_either_place_or_from_vllm(config, ids, source):
    assert resolve(**config) == AuxHiddenStates(ids, source)


def test_vllms_choice_is_the_one_that_is_foreseen():
    from vllm.model_executor.models.interfaces import SupportsEagle3

    target = SimpleNamespace(model=SimpleNamespace(layers=range(LAYERS)))
    chosen = SupportsEagle3.get_eagle3_default_aux_hidden_state_layers(target)
    assert chosen == resolve().layer_ids


@pytest.mark.parametrize(
    ("config", "words"),
    [
        (
            {AUX_IDS: [1, 3], "eagle_config": {AUX_IDS: [1, 4]}},
            [f"{AUX_IDS} says [1, 3] and {NESTED} says [1, 4]", "contradicts itself"],
        ),
        (
            {AUX_IDS: [1, 3], "num_aux_layers": 3},
            [f"{AUX_IDS} says 2", "num_aux_layers says 3"],
        ),
        (
            {"num_aux_hidden_states": 3, "num_aux_layers": 2},
            ["num_aux_hidden_states says 3, num_aux_layers says 2"],
        ),
        (
            {"num_aux_hidden_states": 4},
            ["num_aux_hidden_states is 4", f"{AUX_IDS} is not set", "[2, 4, 5]"],
        ),
        ({AUX_IDS: [1, 3, 9]}, [f"{AUX_IDS} names 9", "8 layers", "0 to 8"]),
        ({AUX_IDS: [-1]}, ["names -1"]),
        ({AUX_IDS: [1, 1, 3]}, ["[1, 1, 3]", "twice"]),
        ({AUX_IDS: ["1", "3"]}, ["['1', '3']", "list of integers"]),
        ({"eagle_config": {AUX_IDS: 3}}, [f"{NESTED} is 3", "list of integers"]),
        ({"eagle_config": [1]}, ["eagle_config is [1]"]),
    ],
)
def test_contradictions_are_refused_by_name(config, words):
    sentence = refusal(**config)
    assert [word for word in words if word not in sentence] == []


def test_a_target_too_small_for_vllms_choice_needs_ids():
    with pytest.raises(ValueError, match=r"a target of 2 layers lacks.*\[2, 1, -1\]"):
        AuxHiddenStates.resolve(ConfigKeys(SimpleNamespace()), 2)


@every_family
def test_without_ids_one_warning_says_what_vllm_takes(make_draft, family, eagle3_log):
    """A published draft lost nearly all its acceptance to this, in silence."""
    make_draft(family, num_aux_hidden_states=3).load()
    (warning,) = eagle3_log(logging.WARNING)
    assert warning.startswith(f"{AUX_IDS} is not set") and "[2, 4, 5]" in warning


@every_family
def test_with_ids_there_is_no_warning(make_draft, family, eagle3_log):
    make_draft(family).load()
    assert eagle3_log(logging.WARNING) == []


def test_another_order_than_vllms_is_said(make_draft, eagle3_log):
    make_draft("llama", **{AUX_IDS: [5, 2, 4]}).load()
    (warning,) = eagle3_log(logging.WARNING)
    assert "[5, 2, 4]" in warning and "[2, 4, 5]" in warning


@every_family
def test_an_fc_of_another_width_tells_how_many_it_reads(make_draft, family):
    sentence = make_draft(family, aux=4).refusal()
    assert sentence == (
        "fc.weight has shape [128, 512], but the draft's config asks for [128, 384]. "
        "It reads 4 auxiliary hidden states of 128; the config names none, for which "
        f"vLLM takes [2, 4, 5]. {AUX_IDS} must list those that the draft was trained "
        "on, and num_aux_hidden_states, where set, their number. Correct the config, "
        "or re-export the draft."
    )
    sentence = make_draft(family, aux=4, **{AUX_IDS: [1, 2]}).refusal()
    assert f"the config names [1, 2] ({AUX_IDS})" in sentence


# Without auxiliary hidden states.

WITHOUT = {"eagle_config": {"use_aux_hidden_state": False}}


@every_family
@pytest.mark.parametrize("parallel", [False, True])
def test_the_targets_last_hidden_states_enter_as_they_are(make_draft, family, parallel):
    draft = make_draft(family, **WITHOUT, ptd_token_id=TARGET_VOCAB - 1)
    del draft.tensors["fc.weight"]
    mask = draft.tensors["mask_hidden"] = torch.randn(1, 1, HIDDEN)
    model = draft.load(parallel_drafting=parallel)
    states = torch.randn(2, HIDDEN)
    assert model.combine_hidden_states(states) is states
    assert not hasattr(model.model, "fc")
    if parallel:
        assert torch.equal(model.mask_hidden.view(-1), mask.view(-1))


def test_a_null_means_that_they_are_used(make_draft):
    """vLLM's V1 runner takes it for a no; exporters mean their default."""
    nested = {"use_aux_hidden_state": None, AUX_IDS: [2, 4, 5]}
    model = make_draft("llama", eagle_config=nested).load()
    combined = model.combine_hidden_states(torch.ones(1, 3 * HIDDEN))
    assert combined.shape == (1, HIDDEN)
    assert "use_aux_hidden_state" not in model.config.eagle_config


def test_a_no_where_no_runner_reads_it_is_refused(make_draft):
    sentence = make_draft("llama", use_aux_hidden_state=False).refusal()
    assert "at the top level" in sentence and "Move it into eagle_config" in sentence


def test_model_runner_v2_serves_no_draft_without_them(make_draft, monkeypatch):
    config = engine_config(make_draft("llama", **WITHOUT).write())
    assert Eagle3DraftConfig.resolve(config).fc_input_size == HIDDEN
    always = property(lambda _: True)
    monkeypatch.setattr(type(config), "use_v2_model_runner", always)
    with pytest.raises(ValueError, match="Set VLLM_USE_V2_MODEL_RUNNER=0"):
        Eagle3DraftConfig.resolve(config)

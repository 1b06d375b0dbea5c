# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""Greedy drafting goes through `get_top_tokens` by default, and only where it may."""

import importlib
import inspect
import logging
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from vllm.config import SpeculativeConfig

from tests.plugins.clean_process import LogLines
from tests.support.checkpoints import draft_config, write_checkpoint
from tests.support.drafts import engine_config
from vllm_eagle3 import greedy, speculative_config

FAMILIES = ("llama", "qwen3", "deepseek")
OPTION = "use_local_argmax_reduction"
OFF_SWITCH = "VLLM_EAGLE3_DISABLE_LOCAL_ARGMAX"
MakeDraft = Callable[..., Path]


@pytest.fixture
def make_draft(tmp_path: Path) -> MakeDraft:
    """Writes a draft's config; the rule is decided before weights are read."""

    def make(family: str = "llama", **changes: Any) -> Path:
        config = draft_config(family, draft_vocab_size=256, **changes)
        return write_checkpoint(tmp_path / family, config, {})

    return make


def decided(draft: Path, **speculative: Any) -> bool:
    return engine_config(draft, **speculative).speculative_config.__dict__[OPTION]


@pytest.mark.parametrize("family", FAMILIES)
def test_it_is_on_by_default_in_every_family(make_draft, family):
    assert decided(make_draft(family)) is True


@pytest.mark.parametrize("architecture", [None, "LlamaEagle3DraftModel"])
def test_architectures_that_the_fork_adds_count_as_its_own(make_draft, architecture):
    architectures = [architecture] if architecture else None
    assert decided(make_draft(architectures=architectures)) is True


@pytest.mark.parametrize("choice", [True, False])
def test_the_users_choice_stands(make_draft, choice):
    assert decided(make_draft(), **{OPTION: choice}) is choice


def test_probabilistic_drafts_stay_with_whole_logits(make_draft):
    """Model Runner V2 refuses the two together."""
    assert decided(make_draft(), draft_sample_method="probabilistic") is False


def test_adaptive_verification_stays_with_whole_logits(make_draft):
    """vLLM's config refuses the two together."""
    engine = engine_config(make_draft())
    config = SpeculativeConfig(
        method="eagle3",
        model=engine.speculative_config.model,
        num_speculative_tokens=3,
        enable_adaptive_verification=True,
        target_model_config=engine.model_config,
        target_parallel_config=engine.parallel_config,
    )
    assert getattr(config, OPTION) is False


@pytest.mark.parametrize("scale", [0, 0.0, -1.0, "2"])
def test_where_scaling_turns_the_order_it_stays_off(make_draft, scale):
    """vLLM's reduction refuses such a scale at the first request."""
    assert decided(make_draft(logit_scale=scale)) is False


@pytest.mark.parametrize("scale", [None, 0.25, 4])
def test_a_positive_scale_keeps_the_order(make_draft, scale):
    assert decided(make_draft(logit_scale=scale)) is True


def test_parallel_drafting_is_greedy_too(make_draft):
    assert decided(make_draft(mask_token_id=1, ptd_token_id=1), parallel_drafting=True)


def test_drafts_of_another_class_are_left_alone(make_draft, monkeypatch):
    """As after another plugin has registered a class of its own for the name."""
    registry = importlib.import_module("vllm.model_executor.models.registry")
    models = registry.ModelRegistry.models
    draft = make_draft()
    config = engine_config(draft, **{OPTION: False}).speculative_config
    assert greedy.drafts_by_local_argmax(config)
    (name, *_) = config.draft_model_config.architectures
    monkeypatch.setitem(models, name, models["LlamaForCausalLM"])
    assert not greedy.drafts_by_local_argmax(config)


@pytest.mark.parametrize(
    "architectures, served",
    [
        (["Eagle3LlamaForCausalLM"], True),
        (["Eagle3LlamaForCausalLM", "LlamaForCausalLM"], True),
        (["LlamaForCausalLM", "Eagle3LlamaForCausalLM"], False),
        (["NoSuchModel", "Eagle3LlamaForCausalLM"], True),
        (["NoSuchModel"], False),
        ([], False),
    ],
)
def test_the_first_class_that_vllm_knows_serves_a_draft(architectures, served):
    draft = SimpleNamespace(architectures=architectures)
    assert greedy.is_served_by_the_fork(draft) is served
    assert not greedy.is_served_by_the_fork(None)


def test_arguments_are_known_by_name_however_they_are_given():
    signature = inspect.signature(lambda one, two=2, *, three=3: None)
    by_name = speculative_config._by_name
    assert by_name(signature, (7, 8), {"three": 9}) == {"one": 7, "two": 8, "three": 9}
    assert by_name(signature, (7,), {}) == {"one": 7}
    # The constructor itself says what is wrong.
    assert by_name(signature, (), {"no_such": 1}) == {"no_such": 1}


def test_drafting_of_another_method_is_left_alone(make_draft):
    from vllm.engine.arg_utils import EngineArgs

    target = engine_config(make_draft()).model_config.model
    ngram = {"method": "ngram", "num_speculative_tokens": 2, "prompt_lookup_max": 3}
    arguments = EngineArgs(
        model=target, skip_tokenizer_init=True, speculative_config=ngram
    )
    config = arguments.create_engine_config().speculative_config
    assert getattr(config, OPTION) is False


def test_drafts_of_the_fork_under_another_method_are_left_alone(make_draft):
    """Of the methods of a draft's own runner, only EAGLE-3's is known to take it."""
    config = engine_config(make_draft()).speculative_config
    assert greedy.drafts_by_local_argmax(config)
    config.method = "dflash"
    assert not greedy.drafts_by_local_argmax(config)


def test_it_is_logged_once_and_says_how_to_turn_it_off(clean_vllm, make_draft):
    (line,) = clean_vllm(log_of_two_configs, make_draft())
    assert line.startswith("INFO vllm-eagle3 has set use_local_argmax_reduction")
    assert '"use_local_argmax_reduction": false' in line
    assert f"{OFF_SWITCH}=1" in line


def log_of_two_configs(draft: Path, **options: Any) -> list[str]:
    # The first config in a process sets up vLLM's logging anew.
    decided(draft, **{OPTION: False})
    log = LogLines.attach()
    assert decided(draft, **options) == decided(draft, **options)
    return [line for line in log.lines if "has set" in line]


def test_a_choice_of_the_user_is_not_logged_as_ours(clean_vllm, make_draft):
    draft = make_draft()
    assert clean_vllm(log_with_choice, draft, True) == []
    assert clean_vllm(log_with_choice, draft, False) == []


def log_with_choice(draft: Path, choice: bool) -> list[str]:
    return log_of_two_configs(draft, **{OPTION: choice})


@pytest.mark.parametrize("value, expected", [("1", False), ("on", False), ("0", True)])
def test_the_off_switch_leaves_it_to_vllm(clean_vllm, make_draft, value, expected):
    found = clean_vllm(decided, make_draft(), env={OFF_SWITCH: value})
    assert found is expected


def test_without_the_overlay_it_is_as_in_vllm(clean_vllm, make_draft):
    found = clean_vllm(decided, make_draft(), env={"VLLM_EAGLE3_DISABLE": "1"})
    assert found is False


def test_it_can_be_taken_back(clean_vllm, make_draft):
    within, after, calls = clean_vllm(decide_within_and_after, make_draft())
    assert (within, after) == (True, False)
    assert calls and set(calls) == {1}, "it was watched twice"


def decide_within_and_after(draft: Path) -> tuple[bool, bool, list[int]]:
    logging.disable()
    from vllm_eagle3 import overlay

    with pytest.MonkeyPatch.context() as patch, ExitStack() as undo:
        # The plugin as a whole stays out; only this change is looked at.
        patch.setenv("VLLM_EAGLE3_DISABLE", "1")
        overlay.activate()
        made: list[Any] = []
        for _ in range(2):
            speculative_config.watch(undo, after=[greedy.decide, note_in(made)])
        within = decided(draft)
        undo.close()
        # Kept alive, so that no two have one id.
        calls = Counter(map(id, made))
        return within, decided(draft), list(calls.values())


def note_in(made: list[Any]) -> Callable[[Any, Any], None]:
    return lambda config, given: made.append(config)

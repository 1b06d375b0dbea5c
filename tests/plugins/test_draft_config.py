# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""Both model runners see the layer ids that a draft keeps in eagle_config."""

from types import SimpleNamespace
from typing import Any

import pytest
from transformers import LlamaConfig
from vllm.transformers_utils.configs.eagle import EAGLEConfig

IDS = "eagle_aux_hidden_state_layer_ids"


def draft_config(method: str = "eagle3", **config: Any) -> EAGLEConfig:
    llama = LlamaConfig(architectures=["LlamaForCausalLM"], vocab_size=64, **config)
    return EAGLEConfig(llama, method=method, model_type="eagle")


def layers_on_v1(config: EAGLEConfig) -> tuple[int, ...] | None:
    from vllm.v1.worker.gpu_model_runner import GPUModelRunner

    draft = SimpleNamespace(hf_config=config)
    runner = SimpleNamespace(
        speculative_config=SimpleNamespace(draft_model_config=draft)
    )
    return GPUModelRunner._get_eagle3_aux_layers_from_config(runner)


def layers_on_v2(config: EAGLEConfig) -> tuple[int, ...] | None:
    from vllm.v1.worker.gpu.spec_decode.eagle.eagle3_utils import (
        get_eagle3_aux_layers_from_config,
    )

    draft = SimpleNamespace(hf_config=config)
    return get_eagle3_aux_layers_from_config(SimpleNamespace(draft_model_config=draft))


@pytest.mark.parametrize("runner", [layers_on_v1, layers_on_v2])
def test_nested_ids_are_used(runner):
    assert runner(draft_config(eagle_config={IDS: [1, 5, 9]})) == (1, 5, 9)


@pytest.mark.parametrize("runner", [layers_on_v1, layers_on_v2])
def test_ids_at_the_top_level_win(runner):
    config = draft_config(eagle_config={IDS: [1, 5, 9]}, **{IDS: [2, 6]})
    assert runner(config) == (2, 6)


@pytest.mark.parametrize("runner", [layers_on_v1, layers_on_v2])
@pytest.mark.parametrize(
    "config", [{}, {"eagle_config": {}}, {"eagle_config": {IDS: None}}]
)
def test_without_ids_the_target_decides(runner, config):
    assert runner(draft_config(**config)) is None


def test_drafts_of_another_method_are_left_alone():
    config = draft_config(method="eagle", eagle_config={IDS: [1, 5, 9]})
    assert config.architectures == ["EagleLlamaForCausalLM"]
    assert not hasattr(config, IDS)


def test_a_null_for_auxiliary_hidden_states_is_no_key():
    nested = {"use_aux_hidden_state": None, IDS: [1, 5, 9]}
    assert draft_config(eagle_config=nested).eagle_config == {IDS: [1, 5, 9]}
    assert "use_aux_hidden_state" in nested
    no = {"use_aux_hidden_state": False}
    assert draft_config(eagle_config=no).eagle_config == no


def test_the_drafts_own_config_is_not_changed():
    nested = {IDS: [1, 5, 9]}
    config = draft_config(eagle_config=nested)
    getattr(config, IDS).append(11)
    assert nested == {IDS: [1, 5, 9]}


def test_the_line_at_start_waits_until_logging_is_set_up(clean_vllm):
    """`LLM()` loads plugins first, sets up logging next, then makes the config."""
    before, after = clean_vllm(log_around_the_draft_config)
    assert before == []
    (line,) = after
    assert "is active" in line


def log_around_the_draft_config() -> tuple[list[str], list[str]]:
    import logging

    from tests.plugins.clean_process import LogLines

    handler = LogLines()
    logging.getLogger("vllm").addHandler(handler)
    from vllm.plugins import load_general_plugins

    load_general_plugins()
    before = handler.about_the_overlay()
    logging.getLogger("vllm").setLevel(logging.INFO)
    draft_config()
    draft_config()
    return before, handler.about_the_overlay()

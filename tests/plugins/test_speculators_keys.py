# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""Keys that speculators writes and vLLM leaves behind reach the draft's config."""

import pytest
from vllm.transformers_utils.configs.speculators import SpeculatorsConfig

from vllm_eagle3 import speculators_keys


def extract(algorithm, **keys):
    config = {
        "speculators_model_type": algorithm,
        "transformer_layer_config": {"model_type": "llama"},
        **keys,
    }
    return SpeculatorsConfig.extract_transformers_pre_trained_config(config)


@pytest.mark.parametrize("algorithm", speculators_keys.ALGORITHMS)
def test_keys_are_carried_over(algorithm):
    stated = {"fc_norm": True, "norm_output": True, "num_aux_hidden_states": 4}
    assert extract(algorithm, **stated).items() >= stated.items()


@pytest.mark.parametrize("algorithm", speculators_keys.ALGORITHMS)
def test_keys_that_are_not_there_stay_away(algorithm):
    found = extract(algorithm, num_aux_hidden_states=None)
    assert "num_aux_hidden_states" not in found
    assert not found.get("fc_norm") and not found.get("norm_output")


def test_a_mask_token_is_carried_over_or_left_to_the_draft_model():
    assert extract("peagle", mask_token_id=7)["pard_token"] == 7
    assert extract("peagle")["pard_token"] is None


def test_other_algorithms_are_vllms_own():
    from vllm.transformers_utils.configs.speculators.algos import (
        SUPPORTED_SPECULATORS_TYPES as types,
    )

    wrapped = {name for name in types if hasattr(types[name], "__wrapped__")}
    assert wrapped == set(speculators_keys.ALGORITHMS)

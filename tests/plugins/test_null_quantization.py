# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""Null means absent where vLLM reads a quantisation config; else nothing changes."""

from contextlib import ExitStack
from types import SimpleNamespace

import pytest
from vllm.transformers_utils.model_arch_config_convertor import (
    ModelArchConfigConvertorBase,
)

from vllm_eagle3 import null_quantization

NAME = "_normalize_quantization_config"


@pytest.fixture
def stock(monkeypatch):
    """vLLM's own function, whatever the overlay has put in its place."""
    current = getattr(ModelArchConfigConvertorBase, NAME)
    own = getattr(current, "__wrapped__", current)
    monkeypatch.setattr(ModelArchConfigConvertorBase, NAME, own)
    return own


def normalized(keys, name="quantization_config"):
    config = SimpleNamespace(**{name: keys})
    return getattr(ModelArchConfigConvertorBase, NAME)(SimpleNamespace(), config)


@pytest.mark.parametrize("name", ["quantization_config", "compression_config"])
def test_a_null_method_is_an_absent_one(stock, name):
    with pytest.raises(AttributeError):
        normalized({"quant_method": None}, name)
    with ExitStack() as undo:
        null_quantization.watch(undo)
        assert normalized({"quant_method": None}, name) == {"quant_method": ""}


@pytest.mark.parametrize("key", ["producer", "quantization"])
def test_modelopts_null_keys_are_absent_ones(stock, key):
    keys = {"producer": {"name": "modelopt"}, "quantization": {}, key: None}
    with pytest.raises(AttributeError):
        normalized(dict(keys))
    with ExitStack() as undo:
        null_quantization.watch(undo)
        assert normalized(dict(keys))["quant_method"] == ""


def test_other_configs_are_read_as_ever(stock):
    keys = {
        "quant_method": "FP8",
        "ignored_layers": None,
        "activation_scheme": "dynamic",
    }
    expected = normalized(dict(keys))
    with ExitStack() as undo:
        null_quantization.watch(undo)
        assert normalized(dict(keys)) == expected
        assert normalized(None) is None


def test_the_change_is_made_once_and_taken_back(stock):
    with ExitStack() as undo:
        null_quantization.watch(undo)
        changed = getattr(ModelArchConfigConvertorBase, NAME)
        null_quantization.watch(undo)
        assert getattr(ModelArchConfigConvertorBase, NAME) is changed is not stock
    assert getattr(ModelArchConfigConvertorBase, NAME) is stock

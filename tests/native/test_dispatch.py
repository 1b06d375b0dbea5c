# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""Who computes: the compiled operators where they can, else PyTorch, the same."""

from unittest import mock

import pytest
import torch
from vllm.model_executor.models import draft_vocabulary_ops as operators

from tests.native.inputs import DTYPES, bits, odd_rows, random_map
from tests.native.probes import (
    load_plugin,
    load_plugin_with_libraries_in,
    native_calls,
    status_text,
)
from vllm_eagle3 import native

OFF_SWITCH = "VLLM_EAGLE3_DISABLE_NATIVE"


def results(dtype: torch.dtype) -> tuple[torch.Tensor, ...]:
    logits, ids = odd_rows(1500, dtype), random_map(1500, 4000)
    wide = operators.widen_draft_logits(logits, ids, operators.inverse_ids(ids, 4000))
    return (
        operators.draft_argmax_to_target(logits, ids),
        operators.draft_argmax_to_target(logits, None),
        bits(wide),
    )


BOTH = {"vllm_eagle3::draft_argmax_to_target", "vllm_eagle3::widen_draft_logits"}


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_pytorch_computes_the_same(dtype):
    compiled = results(dtype)
    with mock.patch.object(operators, "_devices", return_value=frozenset()):
        assert native_calls(dtype) == set()
        in_pytorch = results(dtype)
    assert native_calls(dtype) == BOTH
    for one, other in zip(compiled, in_pytorch, strict=True):
        assert torch.equal(one, other)


def test_other_dtypes_are_computed_in_pytorch():
    assert native_calls(torch.float64) == set()


@pytest.mark.parametrize("width", [1, 7, 300])
def test_the_inverse_undoes_the_map(width):
    ids = random_map(width, 300)
    inverse = operators.inverse_ids(ids, 300)
    assert inverse.dtype == torch.int32 and inverse.shape == (300,)
    assert torch.equal(inverse[ids], torch.arange(width, dtype=torch.int32))
    assert int((inverse == -1).sum()) == 300 - width


@pytest.mark.parametrize(
    "environment, expected",
    [
        ({}, ("native for cpu", BOTH)),
        ({OFF_SWITCH: "1"}, (f"PyTorch (switched off by {OFF_SWITCH})", set())),
    ],
)
def test_the_plugin_loads_them_unless_switched_off(clean_vllm, environment, expected):
    assert clean_vllm(load_plugin, env=environment) == expected


def test_where_none_were_built_pytorch_serves(clean_vllm, tmp_path):
    found = clean_vllm(load_plugin_with_libraries_in, tmp_path)
    assert found == ("PyTorch (not built at installation)", set())


def test_a_library_that_does_not_load_is_no_reason_to_fail(clean_vllm, tmp_path):
    """As one for another processor, or for a torch before the stable ABI."""
    for name in native.LIBRARIES.values():
        (tmp_path / name).write_text("no library")
    said, calls = clean_vllm(load_plugin_with_libraries_in, tmp_path)
    assert said.startswith("PyTorch (could not be loaded: ")
    assert calls == set()


def test_status_says_which(clean_vllm):
    assert "operators    native for cpu" in clean_vllm(status_text)
    text = clean_vllm(status_text, env={OFF_SWITCH: "1"})
    assert f"operators    PyTorch (switched off by {OFF_SWITCH})" in text

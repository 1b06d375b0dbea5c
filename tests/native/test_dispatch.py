# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""Who computes: the compiled operators where they can, else PyTorch, the same."""

import os
import subprocess
import sys
from pathlib import Path
from unittest import mock

import pytest
import torch
from vllm.model_executor.models import draft_vocabulary_ops as operators

from tests.native.inputs import DTYPES, bits, odd_rows, random_map
from tests.native.places import INSTRUCTIONS, instructions_here
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


def test_the_plugin_loads_them(clean_vllm):
    said, calls = clean_vllm(load_plugin)
    assert said.startswith("native for cpu") and calls == BOTH
    assert said == str(native.load())


def test_the_plugin_loads_none_where_they_are_switched_off(clean_vllm):
    said = f"PyTorch (switched off by {OFF_SWITCH})"
    assert clean_vllm(load_plugin, env={OFF_SWITCH: "1"}) == (said, set())


def test_all_instructions_up_to_the_processors_can_be_chosen():
    """As the tests of the operators choose them."""
    up_to = INSTRUCTIONS.index(native.instructions())
    assert instructions_here() == INSTRUCTIONS[: up_to + 1]


@pytest.mark.parametrize("limit", instructions_here())
def test_a_limit_for_torch_is_a_limit_for_them(limit):
    """One variable, torch's own."""
    (said,) = what_is_loaded(ATEN_CPU_CAPABILITY=limit)
    assert said.startswith("native for cpu")
    assert said.endswith(f", {limit} on the CPU")


def test_a_limit_of_another_name_is_none():
    (said,) = what_is_loaded(ATEN_CPU_CAPABILITY="avx1024")
    assert said == str(native.load())


def what_is_loaded(**environment: str) -> list[str]:
    script = "from vllm_eagle3 import native; print(native.load())"
    done = subprocess.run(
        [sys.executable, "-c", script],
        env=os.environ | environment,
        cwd=Path(native.__file__).parents[1],
        check=True,
        capture_output=True,
        text=True,
    )
    return done.stdout.splitlines()


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

# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""What a step may not do: allocate more than its result, wait for a device, or break
a graph that is captured or compiled around it.

For the operators and for PyTorch in their place.
"""

from collections.abc import Callable, Iterator
from unittest import mock

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.profiler import ProfilerActivity, profile
from vllm.model_executor.models import draft_vocabulary_ops as operators

from tests.native.inputs import DTYPES, random_logits, random_map
from tests.native.probes import native_calls

TOKENS, DRAFT, TARGET = 6, 3000, 9000
in_every_dtype = pytest.mark.parametrize("dtype", DTYPES, ids=str)


@pytest.fixture(params=["native", "PyTorch"], autouse=True)
def way(request: pytest.FixtureRequest) -> Iterator[str]:
    if request.param == "native":
        assert native_calls()
        yield request.param
        return
    with mock.patch.object(operators, "_is_native", lambda name, logits: False):
        assert not native_calls()
        yield request.param


def inputs(dtype: torch.dtype) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Logits, target ids and their inverse."""
    ids = random_map(DRAFT, TARGET, increasing=True)
    logits = random_logits(TOKENS, DRAFT, dtype)
    return logits, ids, operators.inverse_ids(ids, TARGET)


def allocated(step: Callable[[], torch.Tensor]) -> int:
    """Bytes that torch's allocator for CPUs gives out in a step."""
    step()
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiler:
        result = step()
    assert result.numel() > 0
    events = profiler.profiler.kineto_results.events()
    sizes = [event.nbytes() for event in events if event.name() == "[memory]"]
    return sum(size for size in sizes if size > 0)


@in_every_dtype
def test_greedy_allocates_a_few_numbers_for_each_token(dtype, way):
    logits, ids, _ = inputs(dtype)
    found = allocated(lambda: operators.draft_argmax_to_target(logits, ids))
    # Of PyTorch's max and indexing: the greatest, their draft ids, and the target ids.
    most = {"native": 8, "PyTorch": 64}[way] * TOKENS
    assert 8 * TOKENS <= found <= most


@in_every_dtype
def test_widening_allocates_its_result(dtype):
    step = inputs(dtype)
    found = allocated(lambda: operators.widen_draft_logits(*step))
    assert found == TOKENS * TARGET * dtype.itemsize


@in_every_dtype
def test_nothing_depends_on_values(dtype):
    """Whatever asks a tensor for a value waits for the device; fake ones have none."""
    logits, ids, inverse = inputs(dtype)
    with FakeTensorMode() as fake:
        logits, ids, inverse = (fake.from_tensor(t) for t in (logits, ids, inverse))
        top = operators.draft_argmax_to_target(logits, ids)
        wide = operators.widen_draft_logits(logits, ids, inverse)
    assert top.shape == (TOKENS,) and top.dtype == torch.int64
    assert wide.shape == (TOKENS, TARGET) and wide.dtype == dtype


def test_they_compile_into_one_graph():
    """As traced; what an operator does is not compiled again."""

    def both(logits: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return (
            operators.draft_argmax_to_target(logits, ids),
            operators.widen_draft_logits(logits, ids, inverse),
        )

    logits, ids, inverse = inputs(torch.float32)
    torch._dynamo.reset()
    compiled = torch.compile(both, fullgraph=True, dynamic=True, backend="aot_eager")
    for rows in (logits, logits[:4]):
        for one, other in zip(compiled(rows), both(rows), strict=True):
            assert torch.equal(one, other)

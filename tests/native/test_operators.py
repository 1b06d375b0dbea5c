# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""The operators against plain torch, bit for bit."""

import pytest
import torch
from vllm.model_executor.models.draft_vocabulary import inverse_ids

from tests.native.guarded import at_the_end_of_memory, at_the_start_of_memory
from tests.native.inputs import (
    DTYPES,
    SIZES,
    bits,
    odd_rows,
    random_logits,
    random_map,
)
from tests.native.places import threads

ops = torch.ops.vllm_eagle3
in_every_dtype = pytest.mark.parametrize("dtype", DTYPES, ids=str)


def check_argmax(logits: torch.Tensor, target_ids: torch.Tensor) -> None:
    draft_ids = logits.argmax(-1)
    for ids, expected in ((None, draft_ids), (target_ids, target_ids[draft_ids])):
        found = ops.draft_argmax_to_target(logits, ids)
        assert found.dtype == torch.int64
        assert torch.equal(found, expected)


def check_widening(logits: torch.Tensor, target_ids: torch.Tensor, target: int) -> None:
    expected = logits.new_full((len(logits), target), -torch.inf)
    expected[:, target_ids] = logits
    found = ops.widen_draft_logits(logits, target_ids, inverse_ids(target_ids, target))
    assert found.dtype == logits.dtype and found.is_contiguous()
    assert torch.equal(bits(found), bits(expected))


@in_every_dtype
@pytest.mark.parametrize("increasing", [True, False])
@pytest.mark.parametrize("tokens, draft, target", SIZES)
def test_all_sizes(device, dtype, increasing, tokens, draft, target):
    logits = random_logits(tokens, draft, dtype).to(device)
    ids = random_map(draft, target, increasing=increasing).to(device)
    check_argmax(logits, ids)
    check_widening(logits, ids, target)


@in_every_dtype
@pytest.mark.parametrize("width", [16, 100, 3000, 33000])
@pytest.mark.parametrize("increasing", [True, False])
def test_nan_infinities_zeros_and_denormals(device, dtype, increasing, width):
    logits = odd_rows(width, dtype).to(device)
    ids = random_map(width, 2 * width, increasing=increasing).to(device)
    check_argmax(logits, ids)
    check_widening(logits, ids, 2 * width)


def test_every_pattern_of_sixteen_bits(device):
    """Each against its neighbours, in three orders; each against each is too many."""
    patterns = torch.arange(-(2**15), 2**15).to(torch.int16)
    shuffled = patterns[random_map(2**16, 2**16)]
    for dtype in (torch.bfloat16, torch.float16):
        for order in (patterns, patterns.flip(0), shuffled):
            logits = order.view(dtype).to(device).unfold(0, 2, 1)
            found = ops.draft_argmax_to_target(logits, None)
            assert torch.equal(found, logits.argmax(-1))


@in_every_dtype
@pytest.mark.parametrize("place", [0, 1, 31, 1023, 1024, 32767, 32768, 39999])
def test_the_winner_may_be_anywhere(device, dtype, place):
    logits = torch.full((2, 40000), -5.0, dtype=dtype, device=device)
    logits[0, place] = -4.5
    logits[1, place:] = -4.5
    assert ops.draft_argmax_to_target(logits, None).tolist() == [place, place]


def strided(logits: torch.Tensor) -> dict[str, torch.Tensor]:
    """The same values under other strides; the first column is left out for some."""
    tokens, width = logits.shape
    return {
        "columns of a wider tensor": torch.nn.functional.pad(logits, (0, 5))[:, :width],
        "unaligned": torch.nn.functional.pad(logits, (1, 2))[:, 1 : width + 1],
        "every other row": logits.repeat_interleave(2, 0)[::2],
        "transposed": logits.t().contiguous().t(),
        "every other column": logits.repeat_interleave(2, 1)[:, ::2],
        "one row for all": logits[:1].expand(tokens, width),
    }


@in_every_dtype
@pytest.mark.parametrize("layout", strided(torch.zeros(1, 1)))
@pytest.mark.parametrize("increasing", [True, False])
def test_strides(device, dtype, increasing, layout):
    logits = strided(random_logits(4, 1037, dtype).to(device))[layout]
    ids = random_map(1037, 2051, increasing=increasing).to(device)
    check_argmax(logits, ids)
    check_widening(logits, ids, 2051)


def test_rows_further_apart_than_32_bits_count(device):
    # Pages that nobody writes take no memory.
    storage = torch.empty(3 * 2**31 + 64, dtype=torch.bfloat16, device=device)
    logits = storage.as_strided((3, 16), (2**31, 1))
    logits.copy_(random_logits(3, 16, torch.bfloat16))
    logits[1, 11] = 7.0
    ids = random_map(16, 64, increasing=True).to(device)
    check_argmax(logits, ids)
    check_widening(logits, ids, 64)


ALMOST_INCREASING = {
    "two neighbours": (64, 65),
    "the last two": (998, 999),
    "the first and the last": (0, 999),
}


@in_every_dtype
@pytest.mark.parametrize("case", ALMOST_INCREASING)
def test_maps_that_increase_but_for_two_ids(device, dtype, case):
    one, other = ALMOST_INCREASING[case]
    ids = random_map(1000, 2500, increasing=True)
    ids[[one, other]] = ids[[other, one]]
    logits = random_logits(5, 1000, dtype).to(device)
    check_argmax(logits, ids.to(device))
    check_widening(logits, ids.to(device), 2500)


@in_every_dtype
@pytest.mark.parametrize("reduced", [0, 7])
def test_maps_that_increase_in_pieces(device, dtype, reduced):
    """Pieces of a vector's length, whose order is turned."""
    ids = torch.arange(640).view(-1, 64).flip(0).reshape(-1)[reduced:].clone()
    logits = random_logits(5, len(ids), dtype).to(device)
    check_widening(logits, ids.to(device), 640)
    check_argmax(logits, ids.to(device))


@in_every_dtype
@pytest.mark.parametrize("count", [2, 3, 16])
def test_threads_share_the_rows(device, dtype, count):
    logits = random_logits(13, 9001, dtype).to(device)
    ids = random_map(9001, 30011, increasing=True).to(device)
    with threads(count):
        check_argmax(logits, ids)
        check_widening(logits, ids, 30011)


@in_every_dtype
def test_threads_share_a_row(device, dtype):
    """A row of several segments, whose greatest logit occurs in two of them."""
    logits = torch.zeros(1, 150_000, dtype=dtype)
    logits[0, [70_001, 140_000]] = 1.0
    with threads(3):
        found = ops.draft_argmax_to_target(logits.to(device), None)
    assert found.tolist() == [70_001]


@in_every_dtype
@pytest.mark.parametrize("tokens, draft, target", [(4, 31, 33), (1, 1, 3), (3, 65, 97)])
@pytest.mark.parametrize("guarded", [at_the_end_of_memory, at_the_start_of_memory])
def test_nothing_is_read_beyond_the_tensors(
    device, dtype, guarded, tokens, draft, target
):
    """Else this process ends, on a CPU."""
    ids = random_map(draft, target, increasing=True)
    logits = guarded(random_logits(tokens, draft, dtype)).to(device)
    inverse = guarded(inverse_ids(ids, target)).to(device)
    check_argmax(logits, guarded(ids).to(device))
    wide = ops.widen_draft_logits(logits, guarded(ids).to(device), inverse)
    assert torch.equal(bits(wide[:, ids]), bits(logits))


@in_every_dtype
def test_no_tokens(device, dtype):
    logits = torch.empty(0, 24, dtype=dtype, device=device)
    ids = random_map(24, 90).to(device)
    assert ops.draft_argmax_to_target(logits, ids).shape == (0,)
    found = ops.widen_draft_logits(logits, ids, inverse_ids(ids, 90))
    assert found.shape == (0, 90) and found.dtype == dtype


def test_more_tokens_than_a_grid_has_rows(device):
    logits = random_logits(70000, 9, torch.float16).to(device)
    ids = random_map(9, 12).to(device)
    check_argmax(logits, ids)
    check_widening(logits, ids, 12)


def test_inputs_are_left_as_they_were(device):
    logits = odd_rows(100, torch.bfloat16).to(device)
    ids = random_map(100, 300).to(device)
    inverse = inverse_ids(ids, 300)
    before = [tensor.clone() for tensor in (bits(logits), ids, inverse)]
    ops.draft_argmax_to_target(logits, ids)
    ops.widen_draft_logits(logits, ids, inverse)
    for tensor, copy in zip((bits(logits), ids, inverse), before, strict=True):
        assert torch.equal(tensor, copy)

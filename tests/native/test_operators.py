# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""The operators against plain torch, bit for bit."""

import pytest
import torch
from torch import library
from vllm.model_executor.models.draft_vocabulary import inverse_ids

from tests.native.inputs import (
    DEVICES,
    DTYPES,
    SIZES,
    bits,
    odd_rows,
    random_logits,
    random_map,
)

ops = torch.ops.vllm_eagle3
on_every_device = pytest.mark.parametrize("device", DEVICES)
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


@on_every_device
@in_every_dtype
@pytest.mark.parametrize("increasing", [True, False])
@pytest.mark.parametrize("tokens, draft, target", SIZES)
def test_all_sizes(device, dtype, increasing, tokens, draft, target):
    logits = random_logits(tokens, draft, dtype).to(device)
    ids = random_map(draft, target, increasing=increasing).to(device)
    check_argmax(logits, ids)
    check_widening(logits, ids, target)


@on_every_device
@in_every_dtype
@pytest.mark.parametrize("width", [16, 100, 3000, 33000])
def test_nan_infinities_zeros_and_denormals(device, dtype, width):
    logits = odd_rows(width, dtype).to(device)
    ids = random_map(width, 2 * width).to(device)
    check_argmax(logits, ids)
    check_widening(logits, ids, 2 * width)


@on_every_device
def test_every_pattern_of_sixteen_bits(device):
    """Each against its neighbours, in three orders; each against each is too many."""
    patterns = torch.arange(-(2**15), 2**15).to(torch.int16)
    shuffled = patterns[random_map(2**16, 2**16)]
    for dtype in (torch.bfloat16, torch.float16):
        for order in (patterns, patterns.flip(0), shuffled):
            logits = order.view(dtype).to(device).unfold(0, 2, 1)
            found = ops.draft_argmax_to_target(logits, None)
            assert torch.equal(found, logits.argmax(-1))


@on_every_device
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


@on_every_device
@in_every_dtype
@pytest.mark.parametrize("layout", strided(torch.zeros(1, 1)))
def test_strides(device, dtype, layout):
    logits = strided(random_logits(4, 1037, dtype).to(device))[layout]
    ids = random_map(1037, 2051).to(device)
    check_argmax(logits, ids)
    check_widening(logits, ids, 2051)


@on_every_device
def test_rows_further_apart_than_32_bits_count(device):
    storage = torch.empty(2**31 + 64, dtype=torch.bfloat16, device=device)
    logits = storage.as_strided((2, 16), (2**31, 1))
    logits.copy_(random_logits(2, 16, torch.bfloat16))
    logits[1, 11] = 7.0
    ids = random_map(16, 64).to(device)
    check_argmax(logits, ids)
    check_widening(logits, ids, 64)


@on_every_device
@in_every_dtype
def test_no_tokens(device, dtype):
    logits = torch.empty(0, 24, dtype=dtype, device=device)
    ids = random_map(24, 90).to(device)
    assert ops.draft_argmax_to_target(logits, ids).shape == (0,)
    found = ops.widen_draft_logits(logits, ids, inverse_ids(ids, 90))
    assert found.shape == (0, 90) and found.dtype == dtype


@on_every_device
def test_more_tokens_than_a_grid_has_rows(device):
    logits = random_logits(70000, 9, torch.float16).to(device)
    ids = random_map(9, 12).to(device)
    check_argmax(logits, ids)
    check_widening(logits, ids, 12)


@on_every_device
def test_inputs_are_left_as_they_were(device):
    logits = odd_rows(100, torch.bfloat16).to(device)
    ids = random_map(100, 300).to(device)
    inverse = inverse_ids(ids, 300)
    before = [tensor.clone() for tensor in (bits(logits), ids, inverse)]
    ops.draft_argmax_to_target(logits, ids)
    ops.widen_draft_logits(logits, ids, inverse)
    for tensor, copy in zip((bits(logits), ids, inverse), before, strict=True):
        assert torch.equal(tensor, copy)


REFUSED = {
    "one dimension": (torch.zeros(8), torch.arange(8), "must be [tokens, D]"),
    "float64": (torch.zeros(2, 8).double(), torch.arange(8), "float32, bfloat16 or"),
    "no columns": (torch.zeros(2, 0), torch.arange(0), "no columns"),
    "too few ids": (torch.zeros(2, 8), torch.arange(7), "7 entries for 8 draft ids"),
    "int32 ids": (torch.zeros(2, 8), torch.arange(8).int(), "target_ids must be"),
    "every other id": (torch.zeros(2, 8), torch.arange(16)[::2], "target_ids must be"),
}


@on_every_device
@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_right_is_refused(device, case):
    logits, ids, sentence = REFUSED[case]
    with pytest.raises(RuntimeError) as refused:
        ops.draft_argmax_to_target(logits.to(device), ids.to(device))
    assert sentence in str(refused.value)


@on_every_device
def test_widening_refuses_an_inverse_of_another_dtype(device):
    ids = random_map(8, 16).to(device)
    with pytest.raises(RuntimeError, match="draft_ids must be"):
        ops.widen_draft_logits(
            torch.zeros(2, 8, device=device), ids, inverse_ids(ids, 16).long()
        )


@on_every_device
@in_every_dtype
def test_torch_accepts_the_registrations(device, dtype):
    """Schemas, fake kernels and tracing, under changing sizes too."""
    logits = random_logits(3, 40, dtype).to(device)
    ids = random_map(40, 90).to(device)
    for target_ids in (ids, None):
        library.opcheck(ops.draft_argmax_to_target.default, (logits, target_ids))
    library.opcheck(ops.widen_draft_logits.default, (logits, ids, inverse_ids(ids, 90)))


@on_every_device
def test_both_compile_without_a_break(device):
    """One graph for all batch sizes; `aot_eager` traces and generates no code."""
    ids = random_map(40, 90).to(device)
    inverse = inverse_ids(ids, 90)

    @torch.compile(fullgraph=True, dynamic=True, backend="aot_eager")
    def both(logits: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return (
            ops.draft_argmax_to_target(logits * 2, ids),
            ops.widen_draft_logits(logits * 2, ids, inverse) + 1,
        )

    for tokens in (3, 8):
        logits = random_logits(tokens, 40, torch.float32).to(device)
        top, wide = both(logits)
        assert torch.equal(top, ids[logits.argmax(-1)])
        assert torch.equal(wide[:, ids], logits * 2 + 1)

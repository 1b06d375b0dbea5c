# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""The CUDA kernels' own code against plain torch, on a CPU.

What a GPU does in parallel is done in turn here, see `emulation/cuda_runtime.h`. So
this is no test of races, and everything else that kernels get wrong: which thread reads
and writes what, at any size, alignment and stride.
"""

from itertools import product

import pytest
import torch
from vllm.model_executor.models.draft_vocabulary import inverse_ids

from tests.native import emulation
from tests.native.guarded import at_the_end_of_memory, at_the_start_of_memory
from tests.native.inputs import DTYPES, bits, odd_rows, random_logits, random_map

in_every_dtype = pytest.mark.parametrize("dtype", DTYPES, ids=str)
# (tokens, D, T): around a pack of 16 bytes, a warp, a block, and several blocks.
SIZES = (
    (1, 1, 1),
    (2, 7, 9),
    (1, 33, 64),
    (2, 513, 1000),
    (3, 1000, 1000),
    (1, 4099, 33001),
)


@pytest.fixture(scope="module")
def kernels(tmp_path_factory) -> emulation.Kernels:
    return emulation.build(tmp_path_factory.mktemp("kernels"))


def check_argmax(
    kernels: emulation.Kernels, logits: torch.Tensor, segments: int
) -> None:
    draft_ids = logits.argmax(-1)
    ids = random_map(logits.shape[1], 2 * logits.shape[1])
    assert torch.equal(kernels.argmax(logits, None, segments), draft_ids)
    assert torch.equal(kernels.argmax(logits, ids, segments), ids[draft_ids])


def check_widening(
    kernels: emulation.Kernels, logits: torch.Tensor, target: int
) -> None:
    ids = random_map(logits.shape[1], target)
    expected = logits.new_full((len(logits), target), -torch.inf)
    expected[:, ids] = logits
    # The one ends on 16 bytes where the other starts there, and so for the result.
    guards = (at_the_end_of_memory, at_the_start_of_memory)
    for guard_ids, guard_out in product(guards, guards):
        # Something that no kernel writes, to see that all is written.
        out = guard_out(torch.full_like(expected, 77))
        found = kernels.widen(logits, guard_ids(inverse_ids(ids, target)), out)
        assert torch.equal(bits(found), bits(expected))


@in_every_dtype
@pytest.mark.parametrize("tokens, draft, target", SIZES)
def test_all_sizes(kernels, dtype, tokens, draft, target):
    logits = at_the_end_of_memory(random_logits(tokens, draft, dtype))
    check_argmax(kernels, logits, segments=1)
    check_widening(kernels, logits, target)


@in_every_dtype
@pytest.mark.parametrize("segments", [2, 7, 40])
def test_blocks_share_a_row(kernels, dtype, segments):
    """Also more of them than there are packs to read, or threads in a warp."""
    for width in (17, 1100):
        logits = random_logits(2, width, dtype)
        logits[1, -1] = 9
        check_argmax(kernels, at_the_start_of_memory(logits), segments)


@in_every_dtype
@pytest.mark.parametrize("segments", [1, 3])
def test_nan_infinities_zeros_and_denormals(kernels, dtype, segments):
    logits = odd_rows(300, dtype)
    check_argmax(kernels, logits, segments)
    check_widening(kernels, logits, 700)


@in_every_dtype
@pytest.mark.parametrize("before", (1, 2, 3, 7))
def test_rows_at_any_place(kernels, dtype, before):
    """Each row is aligned otherwise than the one above it."""
    logits = random_logits(3, 101 + before, dtype)[:, before:]
    assert logits.stride(0) == 101 + before
    check_argmax(kernels, logits, segments=2)
    check_widening(kernels, logits, 257)


@in_every_dtype
@pytest.mark.parametrize("before", (1, 2, 3, 7))
def test_rows_shorter_than_a_pack_at_any_place(kernels, dtype, before):
    logits = random_logits(3, 3 + before, dtype)[:, before:]
    # What lies around them would win.
    logits.as_strided((1, before), (1, 1), 0).fill_(9)
    logits[0] = -9
    check_argmax(kernels, logits[:1], segments=1)
    check_widening(kernels, logits, 5)


@in_every_dtype
def test_each_thread_can_have_the_winner(kernels, dtype):
    """The last of the last warp too, in any turn; each row has another winner."""
    width = 4099
    places = [*range(0, width, 241), 2047, 4095, 4096, 4098]
    logits = torch.full((len(places), width), -5.0, dtype=dtype)
    logits[range(len(places)), places] = -4.5
    assert kernels.argmax(logits, None, 1).tolist() == places


@in_every_dtype
def test_ids_at_any_place(kernels, dtype):
    logits, ids = random_logits(2, 64, dtype), random_map(64, 128)
    padded = torch.cat((torch.zeros(1, dtype=torch.int32), inverse_ids(ids, 128)))
    expected = logits.new_full((2, 128), -torch.inf)
    expected[:, ids] = logits
    found = kernels.widen(logits, padded[1:], torch.empty_like(expected))
    assert torch.equal(bits(found), bits(expected))

# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""The operators as torch knows them: what they refuse, their schemas and fakes."""

import pytest
import torch
from torch import library
from vllm.model_executor.models.draft_vocabulary import inverse_ids

from tests.native.inputs import DTYPES, random_logits, random_map

ops = torch.ops.vllm_eagle3
in_every_dtype = pytest.mark.parametrize("dtype", DTYPES, ids=str)


REFUSED = {
    "one dimension": (torch.zeros(8), torch.arange(8), "must be [tokens, D]"),
    "float64": (torch.zeros(2, 8).double(), torch.arange(8), "float32, bfloat16 or"),
    "no columns": (torch.zeros(2, 0), torch.arange(0), "no columns"),
    "too few ids": (torch.zeros(2, 8), torch.arange(7), "7 entries for 8 draft ids"),
    "int32 ids": (torch.zeros(2, 8), torch.arange(8).int(), "target_ids must be"),
    "every other id": (torch.zeros(2, 8), torch.arange(16)[::2], "target_ids must be"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_right_is_refused(device, case):
    logits, ids, sentence = REFUSED[case]
    with pytest.raises(RuntimeError) as refused:
        ops.draft_argmax_to_target(logits.to(device), ids.to(device))
    assert sentence in str(refused.value)


def test_widening_refuses_an_inverse_of_another_dtype(device):
    ids = random_map(8, 16).to(device)
    with pytest.raises(RuntimeError, match="draft_ids must be"):
        ops.widen_draft_logits(
            torch.zeros(2, 8, device=device), ids, inverse_ids(ids, 16).long()
        )


@in_every_dtype
def test_torch_accepts_the_registrations(device, dtype):
    """Schemas, fake kernels and tracing, under changing sizes too."""
    logits = random_logits(3, 40, dtype).to(device)
    ids = random_map(40, 90).to(device)
    for target_ids in (ids, None):
        library.opcheck(ops.draft_argmax_to_target.default, (logits, target_ids))
    library.opcheck(ops.widen_draft_logits.default, (logits, ids, inverse_ids(ids, 90)))


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

# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""The draft-vocabulary contract by itself: sizes and tensors in, map or refusal out."""

import subprocess
import sys
from pathlib import Path

import pytest
import torch
from vllm.model_executor.models import draft_vocabulary
from vllm.model_executor.models.draft_vocabulary import (
    CheckpointTensor,
    VocabularyCase,
    VocabularySizes,
    absolute_ids,
    check_head_rows,
    check_sharing,
    inverse_ids,
    pad_logits,
    read_vocabulary,
    widen_draft_logits,
)

TARGET, REDUCED = 1024, 256


def sizes(draft=REDUCED, embedded=TARGET, target=TARGET):
    return VocabularySizes.resolve(
        target=target, embedded=embedded, draft_vocab_size=draft
    )


def d2t(tensor):
    return CheckpointTensor("d2t", tensor)


def t2d(target_ids, length=TARGET, dtype=torch.bool):
    mask = torch.zeros(length, dtype=torch.bool)
    mask[target_ids] = True
    return CheckpointTensor("t2d", mask.to(dtype))


def offsets_to(target_ids):
    return target_ids - torch.arange(len(target_ids))


EVERY_FOURTH = torch.arange(0, TARGET, 4)
SHUFFLED = torch.randperm(TARGET, generator=torch.Generator().manual_seed(0))


# The table of results, row by row.


@pytest.mark.parametrize("offsets", [None, torch.zeros(TARGET, dtype=torch.int64)])
@pytest.mark.parametrize("mask", [None, t2d(slice(None)), t2d([])])
def test_full_vocabulary_needs_no_map(offsets, mask):
    found = read_vocabulary(
        sizes(TARGET), None if offsets is None else d2t(offsets), mask
    )
    assert found.case is VocabularyCase.FULL
    assert found.offsets is None
    assert str(found) == "full vocabulary (1024), no remap"


def test_full_vocabulary_honours_a_permutation():
    found = read_vocabulary(sizes(TARGET), d2t(offsets_to(SHUFFLED)), t2d(slice(None)))
    assert found.case is VocabularyCase.PERMUTED
    assert torch.equal(absolute_ids(found.offsets), SHUFFLED)


def test_absent_draft_vocab_size_means_the_drafts_vocab_size():
    absent = sizes(None)
    assert absent.draft == TARGET and not absent.declared
    assert read_vocabulary(absent).case is VocabularyCase.FULL
    assert sizes(None, embedded=1088).draft == 1088


@pytest.mark.parametrize("mask", [None, t2d(EVERY_FOURTH)])
def test_reduced_vocabulary_keeps_its_offsets(mask):
    offsets = offsets_to(EVERY_FOURTH)
    found = read_vocabulary(sizes(), d2t(offsets), mask)
    assert found.case is VocabularyCase.REDUCED
    assert torch.equal(found.offsets, offsets)
    assert str(found) == "reduced vocabulary, 256 of 1024, remapped"


@pytest.mark.parametrize("dtype", [torch.bool, torch.uint16, torch.float32])
def test_reduced_vocabulary_is_rebuilt_from_the_mask(dtype):
    found = read_vocabulary(sizes(), None, t2d(EVERY_FOURTH, dtype=dtype))
    assert found.case is VocabularyCase.REDUCED
    assert torch.equal(absolute_ids(found.offsets), EVERY_FOURTH)


def test_a_map_never_built_is_the_identity_of_an_unpadded_vocabulary():
    unpadded = sizes(REDUCED, embedded=REDUCED)
    zeros = d2t(torch.zeros(REDUCED, dtype=torch.int64))
    assert not read_vocabulary(unpadded, zeros, t2d([])).offsets.any()


def test_unpadded_vocabulary_is_the_identity_on_the_first_ids():
    found = read_vocabulary(sizes(REDUCED, embedded=REDUCED))
    assert found.case is VocabularyCase.UNPADDED
    assert found.offsets is None


@pytest.mark.parametrize("offsets", [None, torch.zeros(1088, dtype=torch.int64)])
def test_padded_vocabulary_is_the_identity(offsets):
    padded = sizes(1088, embedded=1088)
    found = read_vocabulary(padded, None if offsets is None else d2t(offsets))
    assert found.case is VocabularyCase.PADDED
    assert found.offsets is None
    assert padded.scored == TARGET


# Refusals: the tensor, what was found, what is allowed, what to do.


def one_entry(index, offset):
    offsets = offsets_to(EVERY_FOURTH)
    offsets[index] = offset
    return offsets


REFUSED = {
    "reduced without a map": (
        sizes(),
        None,
        None,
        (
            "d2t is missing: draft_vocab_size is 256, less than the target's "
            "vocabulary 1024, so the checkpoint must say which target ids it proposes. "
            "Re-export the draft with d2t (offsets) or t2d (mask)."
        ),
    ),
    "past the end": (
        sizes(),
        one_entry(40, 4000),
        None,
        (
            "d2t[40] maps draft id 40 to target id 4040, outside the target vocabulary "
            "[0, 1024). d2t must hold offsets (target id - draft id); re-export the "
            "draft."
        ),
    ),
    "below zero": (
        sizes(),
        one_entry(3, -4),
        None,
        "d2t[3] maps draft id 3 to target id -1, outside",
    ),
    "overflowing": (
        sizes(),
        one_entry(200, 2**63 - 1),
        None,
        "d2t[200] maps draft id 200 to target id 9223372036854776007, outside",
    ),
    "absolute ids": (
        sizes(),
        torch.arange(TARGET - REDUCED, TARGET),
        None,
        (
            "d2t[128] maps draft id 128 to target id 1024, outside the target "
            "vocabulary [0, 1024). d2t must hold offsets (target id - draft id); "
            "re-export the draft. The values of d2t increase within the target's "
            "vocabulary: they look like absolute ids."
        ),
    ),
    "one target id twice": (
        sizes(),
        one_entry(7, 4 * 2 - 7),
        None,
        (
            "d2t maps draft ids 2 and 7 both to target id 8. d2t must be one-to-one; "
            "re-export the draft."
        ),
    ),
    "too short": (
        sizes(),
        offsets_to(EVERY_FOURTH)[:255],
        None,
        "d2t has shape [255], but draft_vocab_size is 256. d2t must have shape [256]",
    ),
    "two dimensions": (
        sizes(),
        offsets_to(EVERY_FOURTH)[None],
        None,
        "d2t has shape [1, 256], but draft_vocab_size is 256.",
    ),
    "size not declared": (
        sizes(None),
        offsets_to(EVERY_FOURTH),
        None,
        (
            "d2t has shape [256], but draft_vocab_size is not set and so taken as "
            "vocab_size 1024."
        ),
    ),
    "bfloat16": (
        sizes(),
        offsets_to(EVERY_FOURTH).to(torch.bfloat16),
        None,
        (
            "d2t has dtype torch.bfloat16, which cannot hold offsets exactly. "
            "Re-export d2t as int64."
        ),
    ),
    "bool": (sizes(), EVERY_FOURTH.bool(), None, "d2t has dtype torch.bool"),
    "fraction": (
        sizes(),
        one_entry(0, 0) + torch.tensor([0.0] * 5 + [0.5] + [0.0] * 250),
        None,
        "d2t[5] is 15.5, not an integer.",
    ),
    "nan": (
        sizes(),
        offsets_to(EVERY_FOURTH).float().index_fill(0, torch.tensor([9]), torch.nan),
        None,
        "d2t[9] is nan, not an integer.",
    ),
    "padded with a map": (
        sizes(1088, embedded=1088),
        torch.ones(1088, dtype=torch.int64),
        None,
        (
            "d2t is not zero although draft_vocab_size 1088 exceeds the target's "
            "vocabulary 1024: such a map cannot be one-to-one."
        ),
    ),
    "mask marks too much": (
        sizes(),
        offsets_to(EVERY_FOURTH),
        t2d(torch.cat([EVERY_FOURTH, torch.tensor([6])])),
        (
            "t2d marks target id 6, against d2t. t2d must be true exactly at the ids "
            "that d2t maps to; re-export the draft, or drop t2d if d2t is right."
        ),
    ),
    "mask marks too little": (
        sizes(),
        offsets_to(EVERY_FOURTH),
        t2d(EVERY_FOURTH[1:]),
        "t2d does not mark target id 0, against d2t.",
    ),
    "mask of a smaller vocabulary": (
        sizes(embedded=TARGET - 4),
        offsets_to(EVERY_FOURTH),
        t2d(EVERY_FOURTH[:-1], length=TARGET - 4),
        "t2d does not mark target id 1020, against d2t.",
    ),
    "mask never built": (
        sizes(),
        torch.zeros(REDUCED, dtype=torch.int64),
        t2d([]),
        "t2d does not mark target id 0, against d2t.",
    ),
    "mask with other values": (
        sizes(),
        offsets_to(EVERY_FOURTH),
        CheckpointTensor("t2d", torch.full((TARGET,), 2)),
        "t2d[0] is 2. t2d must be bool, or hold 0 and 1 only; re-export the draft.",
    ),
    "mask alone, wrong count": (
        sizes(),
        None,
        t2d(EVERY_FOURTH[:200]),
        "d2t is missing and t2d marks 200 target ids, but draft_vocab_size is 256.",
    ),
    "mask alone, past the target": (
        sizes(embedded=TARGET + 8),
        None,
        t2d(EVERY_FOURTH + 4, length=TARGET + 8),
        "t2d marks target id 1024, outside the target vocabulary [0, 1024).",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_contradictions_are_refused_by_name(case):
    vocabulary, offsets, mask, sentence = REFUSED[case]
    found = None if offsets is None else d2t(offsets)
    with pytest.raises(ValueError) as refusal:
        read_vocabulary(vocabulary, found, mask)
    assert str(refusal.value).startswith(sentence)


@pytest.mark.parametrize(
    ("length", "allowed"), [(TARGET, True), (1000, True), (2048, False), (999, False)]
)
@pytest.mark.parametrize("offsets", [None, torch.zeros(TARGET, dtype=torch.int64)])
def test_a_mask_has_the_length_of_a_vocabulary(length, allowed, offsets):
    """Also where its values do not count: a full vocabulary without a map."""
    vocabulary = sizes(TARGET, embedded=1000)
    mask = t2d([], length)
    found = None if offsets is None else d2t(offsets)
    if allowed:
        assert read_vocabulary(vocabulary, found, mask).offsets is None
        return
    with pytest.raises(ValueError) as refusal:
        read_vocabulary(vocabulary, found, mask)
    assert str(refusal.value) == (
        f"t2d has {length} entries, but the target's vocabulary is 1024 and vocab_size "
        "1000 in the draft's config. It must have an entry for each id of one of them; "
        "re-export the draft."
    )


def test_a_mask_has_one_dimension():
    mask = CheckpointTensor("t2d", torch.ones(1, TARGET, dtype=torch.bool))
    with pytest.raises(ValueError, match=r"^t2d has shape \[1, 1024\]\. It must have"):
        read_vocabulary(sizes(TARGET), None, mask)


@pytest.mark.parametrize("size", [0, -1, "256", 256.0, True])
def test_draft_vocab_size_is_a_positive_integer(size):
    with pytest.raises(ValueError, match=f"draft_vocab_size is {size!r}"):
        sizes(size)


def test_draft_vocab_size_past_both_vocabularies_is_refused():
    with pytest.raises(ValueError, match="draft_vocab_size is 2048, more than"):
        sizes(2048)


def test_head_rows_must_be_the_draft_vocabulary():
    head = CheckpointTensor("lm_head.weight", torch.zeros(250, 4))
    with pytest.raises(ValueError) as refusal:
        check_head_rows(sizes(), head)
    assert str(refusal.value) == (
        "lm_head.weight has 250 rows, but draft_vocab_size is 256. Set "
        "draft_vocab_size in the draft's config to 250, or re-export the draft's "
        "lm_head."
    )


@pytest.mark.parametrize(
    ("vocabulary", "own", "widths", "sentence"),
    [
        (sizes(), {"embed_tokens"}, (8, 8), "lm_head.weight is missing"),
        (sizes(TARGET, embedded=512), {"embed_tokens"}, (8, 8), "embed_tokens.weight"),
        (sizes(TARGET), {"lm_head"}, (8, 16), "embed_tokens.weight is missing"),
        (sizes(TARGET), {"embed_tokens"}, (8, 16), "lm_head.weight is missing"),
    ],
)
def test_what_the_target_cannot_lend_must_be_the_drafts_own(
    vocabulary, own, widths, sentence
):
    with pytest.raises(ValueError, match=f"^{sentence}"):
        check_sharing(
            vocabulary,
            own,
            mapped=False,
            hidden_size=widths[0],
            target_hidden_size=widths[1],
        )


def test_a_full_vocabulary_draft_may_borrow_everything():
    check_sharing(
        sizes(TARGET), set(), mapped=False, hidden_size=8, target_hidden_size=8
    )


# Exactness of offsets.


@pytest.mark.parametrize(
    "dtype", [torch.int16, torch.int32, torch.int64, torch.float32, torch.float64]
)
def test_offsets_are_exact_in_every_dtype_that_can_hold_them(dtype):
    offsets = offsets_to(EVERY_FOURTH)
    found = read_vocabulary(sizes(), d2t(offsets.to(dtype)))
    assert found.offsets.dtype == torch.int64
    assert torch.equal(found.offsets, offsets)


# Widening.


def test_equal_vocabularies_return_the_heads_own_tensor():
    logits = torch.randn(3, TARGET)
    assert pad_logits(logits, TARGET) is logits


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_mapped_logits_stand_at_their_ids_and_nowhere_else(dtype):
    logits = torch.randn(3, REDUCED).to(dtype)
    draft_ids = inverse_ids(EVERY_FOURTH, TARGET)
    wide = widen_draft_logits(logits, EVERY_FOURTH, draft_ids)
    assert wide.dtype == dtype
    assert torch.equal(wide[:, EVERY_FOURTH], logits)
    assert int(wide.isfinite().sum()) == logits.numel()


def test_unpadded_logits_keep_their_ids():
    logits = torch.randn(3, REDUCED)
    wide = pad_logits(logits, TARGET)
    assert torch.equal(wide[:, :REDUCED], logits)
    assert bool((wide[:, REDUCED:] == -torch.inf).all())


def test_the_contract_imports_no_vllm():
    """Run it where `import vllm` is an error."""
    folder = Path(draft_vocabulary.__file__).parent
    program = f"""
import importlib, sys, types
sys.modules["vllm"] = None
package = types.ModuleType("contract")
package.__path__ = [{str(folder)!r}]
sys.modules["contract"] = package
print(importlib.import_module("contract.draft_vocabulary").VocabularyCase.FULL.name)
"""
    run = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert run.stdout.strip() == "FULL"

# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""Parallel drafting: mask token and mask hidden states, in all families."""

import logging
from types import SimpleNamespace

import pytest
import torch
from vllm.model_executor.models.eagle3_config_keys import ConfigKeys
from vllm.model_executor.models.eagle3_parallel import mask_token_id

from tests.support.checkpoints import FAMILIES, HIDDEN, TARGET_VOCAB

every_family = pytest.mark.parametrize("family", FAMILIES)
LAST = TARGET_VOCAB - 1


def token(**config):
    return mask_token_id(ConfigKeys(SimpleNamespace(**config)))


@pytest.mark.parametrize(
    "config",
    [
        {"mask_token_id": 7},
        {"pard_token": 7},
        {"ptd_token_id": 7},
        {"dspark_noise_token_id": 7},
        {"dflash_config": {"mask_token_id": 7}},
        {"mask_token_id": 7, "pard_token": 7},
        {"mask_token_id": None, "ptd_token_id": 7},
    ],
)
def test_every_key_of_the_mask_token(config):
    assert token(**config) == 7


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ({}, "names no mask token"),
        ({"ptd_token_id": "128256"}, "ptd_token_id is '128256'"),
        ({"pard_token": -1}, "pard_token is -1"),
        ({"mask_token_id": True}, "mask_token_id is True"),
        (
            {"mask_token_id": 7, "pard_token": 8},
            "mask_token_id says 7, pard_token says 8",
        ),
    ],
)
def test_a_mask_token_that_is_none_is_refused(config, words):
    with pytest.raises(ValueError, match=words):
        token(**config)


def parallel(make_draft, family, token_id, shape=(1, 1, 3 * HIDDEN), **changes):
    draft = make_draft(family, ptd_token_id=token_id, **changes)
    draft.tensors["mask_hidden"] = torch.randn(shape)
    return draft


@pytest.mark.parametrize(
    ("family", "shape"),
    [
        ("llama", (3 * HIDDEN,)),
        ("qwen3", (3, HIDDEN)),
        ("deepseek", (1, 3, 1, HIDDEN)),
    ],
)
def test_mask_hidden_of_any_shape(make_draft, family, shape):
    draft = parallel(make_draft, family, LAST, shape)
    model = draft.load(parallel_drafting=True)
    assert torch.equal(model.mask_hidden[0], draft.tensors["mask_hidden"].flatten())


@every_family
def test_mask_hidden_of_another_size_names_both(make_draft, family):
    draft = parallel(make_draft, family, LAST, (1, 1, HIDDEN))
    sentence = draft.refusal(parallel_drafting=True)
    assert sentence.startswith("mask_hidden has 128 elements")
    assert "asks for 384" in sentence


@every_family
def test_mask_hidden_in_complex_numbers_is_refused(make_draft, family):
    """Loaded as it is, it would lose its imaginary part without a word."""
    draft = parallel(make_draft, family, LAST, (1, 3 * HIDDEN))
    draft.tensors["mask_hidden"] = draft.tensors["mask_hidden"].to(torch.complex64)
    sentence = draft.refusal(parallel_drafting=True)
    assert sentence.startswith("mask_hidden is torch.complex64")


@every_family
def test_a_mask_token_without_a_row_is_refused(make_draft, family):
    """Published keys name the id after the last; its embedding is out of bounds."""
    draft = parallel(make_draft, family, TARGET_VOCAB)
    sentence = draft.refusal(parallel_drafting=True)
    assert sentence.startswith("The mask token of the draft's config is 1024, but")
    assert "taken from the target and has 1024 rows" in sentence
    draft.load(parallel_drafting=False)


@every_family
def test_own_embeddings_may_have_a_row_for_the_mask_token(make_draft, family):
    rows = TARGET_VOCAB + 64
    draft = parallel(make_draft, family, TARGET_VOCAB, vocab_size=rows)
    draft.tensors["embed_tokens.weight"] = torch.randn(rows, HIDDEN)
    model = draft.load(parallel_drafting=True)
    embedded = model.embed_input_ids(torch.tensor([TARGET_VOCAB]))
    expected = draft.tensors["embed_tokens.weight"][TARGET_VOCAB]
    assert torch.equal(embedded[0], expected)


@every_family
def test_serving_such_a_draft_without_is_said(make_draft, family, eagle3_log):
    parallel(make_draft, family, LAST).load()
    (warning,) = eagle3_log(logging.WARNING)
    assert "mask_hidden" in warning and '"parallel_drafting": true' in warning

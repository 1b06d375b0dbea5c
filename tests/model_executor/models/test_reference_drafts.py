# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""`qwen3_dspark.py` and `qwen3_dflash.py` stay vLLM's: references of the same contract.

Their content is pinned by the overlay's tests; here is what they do with full, default
and reduced vocabularies, and where they differ from the contract that the fork keeps.
"""

import importlib

import pytest
import torch

from tests.support.checkpoints import (
    HIDDEN,
    TARGET_VOCAB,
    draft_config,
    write_checkpoint,
)
from tests.support.drafts import engine_config
from tests.support.stock import build, make_ready, stock_file

REDUCED, PADDED = 256, 1088
EVERY_FOURTH = torch.arange(0, TARGET_VOCAB, 4)
OFFSETS = EVERY_FOURTH - torch.arange(REDUCED)

CLASSES = {
    "dflash": ("qwen3_dflash", "DFlashQwen3ForCausalLM"),
    "dspark": ("qwen3_dspark", "Qwen3DSparkForCausalLM"),
}
both = pytest.mark.parametrize("reference", CLASSES)


@pytest.fixture
def construct(tmp_path):
    """`construct(reference, draft_vocab_size)` gives a model and its config."""

    def make(reference, draft_vocab_size):
        draft = draft_config(
            "qwen3",
            architectures=["DFlashDraftModel"],
            draft_vocab_size=draft_vocab_size,
            vocab_size=max(TARGET_VOCAB, draft_vocab_size or 0),
            dflash_config={"mask_token_id": 7, "target_layer_ids": [1, 3, 5]},
            markov_rank=8,
            markov_head_type="vanilla",
            block_size=4,
        )
        folder = write_checkpoint(tmp_path / "draft", draft, {})
        config = engine_config(folder, method="dflash")
        module, name = CLASSES[reference]
        loaded = importlib.import_module(f"vllm.model_executor.models.{module}")
        assert loaded.__file__ == str(stock_file(module))
        return build(getattr(loaded, name), config, {}), config

    return make


def checkpoint_of(model):
    """The model's own tensors, as a checkpoint would name them."""
    return {
        name.removeprefix("model."): torch.full_like(value, 0.5)
        for name, value in model.named_parameters()
        if name != "draft_id_to_target_id"
    }


@both
@pytest.mark.parametrize("draft_vocab_size", [TARGET_VOCAB, None])
def test_full_and_default_vocabularies_have_no_map(
    construct, reference, draft_vocab_size
):
    model, config = construct(reference, draft_vocab_size)
    assert model.draft_id_to_target_id is None
    model.load_weights(checkpoint_of(model).items())
    make_ready(model, config)
    assert model.compute_logits(torch.ones(2, HIDDEN)).shape == (2, TARGET_VOCAB)


@both
def test_a_reduced_vocabulary_is_mapped_by_offsets(construct, reference):
    model, config = construct(reference, REDUCED)
    offsets = model.draft_id_to_target_id
    assert isinstance(offsets, torch.nn.Parameter)
    assert (offsets.dtype, offsets.shape) == (torch.int64, (REDUCED,))
    model.load_weights((checkpoint_of(model) | {"d2t": OFFSETS}).items())
    make_ready(model, config)
    (logits,) = model.compute_logits(torch.ones(1, HIDDEN))
    assert torch.equal(logits.isfinite().nonzero().flatten(), EVERY_FOURTH)


# Where the references differ from the fork's contract, and from each other.


def test_dflash_takes_a_padded_draft_for_a_reduced_one(construct):
    """`!=`; the contract says `None`, for padding maps to nothing."""
    offsets = construct("dflash", PADDED)[0].draft_id_to_target_id
    assert offsets.shape == (PADDED,) and not offsets.any()


def test_dspark_takes_a_padded_draft_as_the_contract_does(construct):
    """`<` (vLLM PR #55133)."""
    assert construct("dspark", PADDED)[0].draft_id_to_target_id is None


def test_dflash_serves_a_reduced_draft_without_a_map_as_identity(construct):
    """The contract refuses it."""
    model, _ = construct("dflash", REDUCED)
    model.load_weights(checkpoint_of(model).items())
    assert not model.draft_id_to_target_id.any()


def test_dspark_refuses_a_reduced_draft_without_a_map(construct):
    model, _ = construct("dspark", REDUCED)
    with pytest.raises(ValueError, match="must include a d2t mapping"):
        model.load_weights(checkpoint_of(model).items())


@both
def test_both_fail_on_a_full_vocabulary_draft_that_ships_a_map(construct, reference):
    """The contract drops a map of zeros."""
    model, _ = construct(reference, TARGET_VOCAB)
    zeros = torch.zeros(TARGET_VOCAB, dtype=torch.int64)
    with pytest.raises(ValueError, match="named 'draft_id_to_target_id'"):
        model.load_weights((checkpoint_of(model) | {"d2t": zeros}).items())

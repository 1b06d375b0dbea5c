# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""Vocabularies as exporters really write them, each in every family."""

import pytest
import torch

from .small import REDUCED, SIZES, TARGET, every_family, refusal, serve, small

BOTH = {"d2t": "always", "t2d": "always"}
NEITHER = {"d2t": "never", "t2d": "never"}
FULL = {"draft_vocab": TARGET}


@every_family
@pytest.mark.parametrize("marked", [True, False], ids=["all marked", "none marked"])
def test_a_full_vocabulary_with_a_map_of_zeros(family, marked, tmp_path):
    """SpecForge, EAGLE and amazon mark all ids; AngelSlim marks none."""
    draft = small(family, BOTH, t2d_value=marked, **FULL)
    assert not draft.tensors["d2t"].any()
    assert serve(draft, tmp_path).draft_id_to_target_id is None


@every_family
def test_a_full_vocabulary_in_another_order(family, tmp_path):
    draft = small(family, BOTH, **FULL)
    draft.tensors["d2t"] = torch.arange(TARGET).flip(0) - torch.arange(TARGET)
    assert serve(draft, tmp_path).draft_id_to_target_id is not None


@every_family
@pytest.mark.parametrize("size", [TARGET, None, ...], ids=["equal", "null", "absent"])
@pytest.mark.parametrize("head", [True, False], ids=["own head", "shared head"])
def test_a_full_vocabulary_without_a_map(family, size, head, tmp_path):
    draft = small(family, {"head": head, **NEITHER}, draft_vocab=size)
    assert serve(draft, tmp_path).draft_id_to_target_id is None


@every_family
def test_a_second_key_for_the_size_of_the_vocabulary(family, tmp_path):
    serve(small(family, keys={"truncated_vocab_size": REDUCED}), tmp_path)


@every_family
@pytest.mark.parametrize("vocab", [TARGET + 1, TARGET + 64, TARGET - 24])
def test_a_config_that_counts_other_ids_than_the_target(family, vocab, tmp_path):
    """Tokenizers, padded embeddings and configs give three numbers for one model."""
    serve(small(family, vocab=vocab, target_vocab=TARGET), tmp_path)


@every_family
@pytest.mark.parametrize("exporter", [NEITHER, BOTH], ids=["no map", "zero map"])
def test_a_draft_padded_beyond_its_target(family, exporter, tmp_path):
    padded = TARGET + 64
    draft = small(
        family, exporter, vocab=padded, draft_vocab=padded, target_vocab=TARGET
    )
    draft.tensors["lm_head.weight"][TARGET:] *= 100  # would win everywhere
    serve(draft, tmp_path)


@every_family
def test_a_reduced_vocabulary_without_its_map(family, tmp_path):
    assert refusal(small(family, NEITHER), tmp_path).startswith(
        f"d2t is missing: draft_vocab_size is {REDUCED}, less than the target's "
        f"vocabulary {TARGET}"
    )


@every_family
def test_a_reduced_vocabulary_with_the_mask_alone(family, tmp_path):
    serve(small(family, {"d2t": "never"}), tmp_path)


@every_family
def test_a_reduced_vocabulary_without_the_mask(family, tmp_path):
    serve(small(family, {"t2d": "never"}), tmp_path)


@every_family
def test_numbers_of_draft_ids_in_place_of_offsets(family, tmp_path):
    """verl-SpeCo 0.1.0 starts with 0, 1, 2, ... and the first ids marked."""
    draft = small(family)
    draft.tensors["d2t"] = torch.arange(REDUCED)
    draft.tensors["t2d"] = torch.arange(TARGET) < REDUCED
    assert refusal(draft, tmp_path).startswith("t2d marks target id 1, against d2t.")


@every_family
def test_numbers_of_draft_ids_in_a_full_vocabulary(family, tmp_path):
    draft = small(family, BOTH, **FULL)
    draft.tensors["d2t"] = torch.arange(TARGET)
    sentence = refusal(draft, tmp_path)
    assert sentence.startswith(f"d2t[{TARGET // 2}] maps draft id {TARGET // 2} to")
    assert "look like absolute ids" in sentence


@every_family
def test_absolute_ids_in_place_of_offsets(family, tmp_path):
    draft = small(family, {"t2d": "never"})
    draft.tensors["d2t"] += torch.arange(REDUCED)
    assert "look like absolute ids" in refusal(draft, tmp_path)


@every_family
def test_a_map_filled_up_with_ids_that_never_occurred(family, tmp_path):
    """SpecForge does so when its corpus has fewer ids than the draft."""
    draft = small(family)
    ids = torch.cat((torch.arange(200), torch.arange(TARGET - 56, TARGET)))
    draft.tensors["d2t"] = ids - torch.arange(REDUCED)
    draft.tensors["t2d"] = torch.zeros(TARGET, dtype=bool).index_fill(0, ids, True)
    serve(draft, tmp_path)


@every_family
def test_a_map_made_anew_beside_the_mask_of_before(family, tmp_path):
    """No one can tell that a map is not the head's; a mask of before gives it away."""
    draft = small(family)
    draft.tensors["d2t"] = 2 * torch.arange(REDUCED) - torch.arange(REDUCED)
    sentence = refusal(draft, tmp_path)
    assert sentence.startswith("t2d ") and "against d2t" in sentence


@every_family
def test_a_map_in_the_order_of_frequency(family, tmp_path):
    """Exporters sort; nothing says that they must."""
    draft = small(family, {"t2d": "never"})
    ids = draft.tensors["d2t"] + torch.arange(REDUCED)
    draft.tensors["d2t"] = ids.flip(0) - torch.arange(REDUCED)
    serve(draft, tmp_path)


@every_family
def test_offsets_of_32_bits(family, tmp_path):
    draft = small(family)
    draft.tensors["d2t"] = draft.tensors["d2t"].to(torch.int32)
    serve(draft, tmp_path)


@every_family
def test_a_reduced_vocabulary_without_a_head(family, tmp_path):
    assert refusal(small(family, {"head": False}), tmp_path).startswith(
        f"lm_head.weight is missing: draft_vocab_size is {REDUCED}, so the target's"
    )


@every_family
@pytest.mark.parametrize("name", ["eagle3_draft_model.", "model."])
def test_a_map_under_a_prefix(family, name, tmp_path):
    draft = small(family)
    draft.tensors[f"{name}d2t"] = draft.tensors.pop("d2t")
    draft.tensors[f"{name}t2d"] = draft.tensors.pop("t2d")
    serve(draft, tmp_path)


@every_family
def test_a_name_that_only_contains_the_maps(family, tmp_path):
    draft = small(family)
    draft.tensors["d2t_weight"] = torch.zeros(4)
    assert "holds d2t_weight," in refusal(draft, tmp_path)


@every_family
def test_a_reduced_draft_that_says_it_is_tied(family, tmp_path):
    """Its own head counts, not its embeddings of another size."""
    draft = small(family, {"embed": True}, keys={"tie_word_embeddings": True})
    serve(draft, tmp_path)


@every_family
def test_embeddings_that_are_the_head_too(family, tmp_path):
    draft = small(
        family,
        {"embed": True, "head": False, **NEITHER},
        keys={"tie_word_embeddings": True},
        **FULL,
    )
    serve(draft, tmp_path)


def test_the_sizes_are_not_scaled():
    """The numbers in this file are those of the checkpoints."""
    scaled = SIZES.scaled()
    assert (scaled.hidden, scaled.intermediate, scaled.kv_heads) == (64, 128, 1)

# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""What loading does beyond the first checkpoint: updates, dummies, leftovers, words."""

import logging
from unittest import mock

import pytest
import torch
from vllm.model_executor.models.draft_vocabulary import VocabularySizes
from vllm.model_executor.models.eagle3_checkpoint import Eagle3Checkpoint
from vllm.model_executor.models.eagle3_head import Eagle3ForCausalLM
from vllm.model_executor.models.eagle3_vocabulary import DraftVocabularyMap

from tests.support.checkpoints import (
    FAMILIES,
    HIDDEN,
    TARGET_VOCAB,
    target_config,
)

REDUCED = 256
EVERY_FOURTH = torch.arange(0, TARGET_VOCAB, 4)
OFFSETS = EVERY_FOURTH - torch.arange(REDUCED)
TO_THE_END = torch.full((REDUCED,), TARGET_VOCAB - REDUCED)
SHUFFLED = torch.randperm(TARGET_VOCAB, generator=torch.Generator().manual_seed(0))

every_family = pytest.mark.parametrize("family", FAMILIES)
gqa_family = pytest.mark.parametrize("family", ["llama", "qwen3"])


def reduced(make_draft, family="llama", **changes):
    draft = make_draft(family, draft_vocab=REDUCED, **changes)
    draft.tensors["d2t"] = OFFSETS
    return draft


def scored_ids(model):
    """Target ids to which the draft gives a probability."""
    logits = model.compute_logits(torch.ones(1, HIDDEN))
    assert logits.shape == (1, TARGET_VOCAB)
    return logits[0].isfinite().nonzero().flatten()


# Later loads.


@every_family
def test_an_update_without_a_map_keeps_it(make_draft, family):
    model = reduced(make_draft, family).load()
    model.load_weights([("lm_head.weight", torch.ones(REDUCED, HIDDEN))])
    assert torch.equal(model.draft_id_to_target_id, OFFSETS)
    assert torch.equal(scored_ids(model), EVERY_FOURTH)


@every_family
def test_an_update_with_a_map_rebuilds_all_that_is_derived(make_draft, family):
    model = reduced(make_draft, family).load()
    parameter, target_ids = model.draft_id_to_target_id, model.target_ids
    loaded = model.load_weights([("d2t", TO_THE_END)])
    assert loaded == {"draft_id_to_target_id"}
    last = torch.arange(TARGET_VOCAB - REDUCED, TARGET_VOCAB)
    assert torch.equal(scored_ids(model), last)
    states = torch.randn(8, HIDDEN)
    expected = model.compute_logits(states).argmax(-1)
    assert torch.equal(model.get_top_tokens(states), expected)
    # A captured CUDA graph reads the tensors that it has seen.
    assert model.draft_id_to_target_id is parameter
    assert model.target_ids is target_ids


@every_family
def test_a_refused_update_changes_nothing(make_draft, family):
    model = reduced(make_draft, family).load()
    norm = model.model.norm.weight.clone()
    update = [("norm.weight", torch.zeros(HIDDEN)), ("d2t", OFFSETS + TARGET_VOCAB)]
    with pytest.raises(ValueError, match="outside the target vocabulary"):
        model.load_weights(update)
    with pytest.raises(ValueError, match="has no place for"):
        model.load_weights([*update[:1], ("layers.0.nonsense.weight", norm)])
    with pytest.raises(ValueError, match="norm.weight has shape"):
        model.load_weights([("norm.weight", torch.zeros(HIDDEN + 1))])
    assert torch.equal(model.model.norm.weight, norm)
    assert torch.equal(model.draft_id_to_target_id, OFFSETS)


def test_an_updates_mask_is_checked_against_the_map_in_use(make_draft):
    model = reduced(make_draft).load()
    mask = torch.zeros(TARGET_VOCAB, dtype=torch.bool)
    mask[EVERY_FOURTH] = True
    assert model.load_weights([("t2d", mask)]) == set()
    mask[EVERY_FOURTH[0]] = False
    with pytest.raises(ValueError, match="t2d does not mark target id 0"):
        model.load_weights([("t2d", mask)])


@pytest.mark.parametrize("offsets", [SHUFFLED - torch.arange(TARGET_VOCAB)])
def test_a_full_vocabulary_may_gain_and_lose_a_permutation(
    make_draft, offsets, eagle3_log
):
    model = make_draft("llama").load()
    assert eagle3_log(logging.WARNING) == []
    model.load_weights([("d2t", offsets)])
    (warning,) = eagle3_log(logging.WARNING)
    assert "CUDA graphs" in warning
    states = torch.randn(4, HIDDEN)
    permuted = model.compute_logits(states)
    assert torch.equal(permuted.argmax(-1), model.get_top_tokens(states))
    model.load_weights([("d2t", torch.zeros_like(offsets))])
    assert model.draft_id_to_target_id is None
    assert torch.equal(permuted[:, SHUFFLED], model.compute_logits(states))


@every_family
def test_an_update_never_writes_the_targets_modules(make_draft, family, eagle3_log):
    """vLLM puts the target's embedding and head in place of absent ones."""
    model = make_draft(family, head=False).load()
    targets = torch.nn.ModuleDict(
        {"embed": type(model.model.embed_tokens)(TARGET_VOCAB, HIDDEN)}
    )
    del model.model.embed_tokens
    model.model.embed_tokens = targets["embed"]
    before = targets["embed"].weight.zero_().clone()
    loaded = model.load_weights([("embed_tokens.weight", torch.ones_like(before))])
    assert loaded == set()
    assert torch.equal(targets["embed"].weight, before)
    assert any("embed_tokens.weight" in line for line in eagle3_log(logging.WARNING))


@every_family
@pytest.mark.parametrize(
    ("draft_vocab", "vocab"),
    [(TARGET_VOCAB, TARGET_VOCAB), (REDUCED, TARGET_VOCAB), (1088, 1088)],
)
def test_a_dummy_model_speaks_the_targets_vocabulary(
    make_draft, family, draft_vocab, vocab
):
    draft = make_draft(family, draft_vocab=draft_vocab, vocab_size=vocab)
    draft.tensors = {}
    model = draft.load(engine={"load_format": "dummy"})
    states = torch.randn(4, HIDDEN)
    logits = model.compute_logits(states)
    assert logits.shape == (4, TARGET_VOCAB)
    assert torch.equal(model.get_top_tokens(states), logits.argmax(-1))


def test_loaders_that_set_parameters_directly_are_followed(make_draft):
    """Sharded-state and similar loaders never call `load_weights`."""
    draft = reduced(make_draft)
    model = draft.load(engine={"load_format": "dummy"})
    model.draft_id_to_target_id.data.copy_(OFFSETS)
    model.process_weights_after_loading()
    assert torch.equal(scored_ids(model), EVERY_FOURTH)


def test_derived_ids_move_with_the_model_and_stay_out_of_its_state():
    sizes = VocabularySizes.resolve(
        target=TARGET_VOCAB, embedded=TARGET_VOCAB, draft_vocab_size=REDUCED
    )
    holder = DraftVocabularyMap(sizes)
    assert set(holder.state_dict()) == {"draft_id_to_target_id"}
    assert holder.to("meta").target_ids.device.type == "meta"


@every_family
def test_load_weights_names_every_parameter_of_the_checkpoint(make_draft, family):
    """So that vLLM's own completeness check works."""
    named = []

    def load_and_note(model, weights):
        loaded = load_weights(model, weights)
        # A copy: vLLM adds to the set what it exempts.
        named.append(({name for name, _ in model.named_parameters()}, set(loaded)))
        return loaded

    load_weights = Eagle3ForCausalLM.load_weights
    with mock.patch.object(Eagle3ForCausalLM, "load_weights", load_and_note):
        reduced(make_draft, family).load()
    ((parameters, loaded),) = named
    assert parameters - loaded == {"model.embed_tokens.weight"}
    assert loaded <= parameters


# Leftovers, and names without a place.


@every_family
def test_later_layers_read_no_embeddings(make_draft, family):
    draft = make_draft(family, layers=3)
    draft.tensors |= {
        f"layers.{index}.hidden_norm.weight": torch.ones(HIDDEN) for index in (1, 2)
    }
    model = draft.load()
    first, *later = model.model.layers
    projection = "fused_qkv_a_proj" if family == "deepseek" else "qkv_proj"
    assert getattr(first.self_attn, projection).input_size == 2 * HIDDEN
    assert len(later) == 2
    for layer in later:
        assert getattr(layer.self_attn, projection).input_size == HIDDEN


@every_family
def test_what_is_not_used_is_said(make_draft, family, eagle3_log):
    draft = make_draft(family, layers=2)
    unused = {
        "layers.1.hidden_norm.weight": torch.ones(HIDDEN),
        "midlayer.self_attn.rotary_emb.inv_freq": torch.ones(16),
    }
    draft.tensors |= unused
    draft.load()
    (warning,) = eagle3_log(logging.WARNING)
    assert all(name in warning for name in unused)


@every_family
def test_an_fc_that_the_config_turns_off_is_said(make_draft, family, eagle3_log):
    draft = make_draft(family, eagle_config={"use_aux_hidden_state": False})
    model = draft.load()
    states = torch.randn(2, HIDDEN)
    assert model.combine_hidden_states(states) is states
    (warning,) = eagle3_log(logging.WARNING)
    assert "fc.weight" in warning


@every_family
def test_a_layer_count_that_the_file_does_not_hold_is_one_sentence(make_draft, family):
    """Published drafts of one layer say 28, 36 or 40: their target's number."""
    draft = make_draft(family, num_hidden_layers=4)
    assert draft.refusal() == (
        "num_hidden_layers is 4 in the draft's config, but the checkpoint holds 1. Set "
        "num_hidden_layers to 1."
    )
    draft = make_draft(family, layers=2, num_hidden_layers=1)
    assert draft.refusal().endswith("Set num_hidden_layers to 2.")


# Words.


@every_family
@pytest.mark.parametrize(
    ("draft_vocab", "config", "offsets", "words"),
    [
        (TARGET_VOCAB, {}, None, "full vocabulary (1024), no remap"),
        (REDUCED, {}, OFFSETS, "reduced vocabulary, 256 of 1024, remapped"),
        (
            1088,
            {"vocab_size": 1088},
            None,
            "padded vocabulary, the first 1024 of 1088 head rows, no remap",
        ),
    ],
)
def test_one_line_says_the_vocabulary_case(
    make_draft, eagle3_log, family, draft_vocab, config, offsets, words
):
    draft = make_draft(family, draft_vocab=draft_vocab, **config)
    if offsets is not None:
        draft.tensors["d2t"] = offsets
    name = type(draft.load()).__name__
    assert eagle3_log(logging.INFO) == [f"EAGLE-3 draft {name}: {words}"]
    assert eagle3_log(logging.WARNING) == []


@every_family
def test_an_unpadded_draft_is_served_with_one_warning(make_draft, family, eagle3_log):
    draft = make_draft(family, draft_vocab=1000, vocab_size=1000)
    model = draft.load()
    assert model.draft_id_to_target_id is None
    assert torch.equal(scored_ids(model), torch.arange(1000))
    (warning,) = eagle3_log(logging.WARNING)
    assert "1000" in warning and "1024" in warning


@every_family
def test_embeddings_that_cannot_hold_the_targets_ids_are_refused(make_draft, family):
    draft = reduced(make_draft, family, vocab_size=REDUCED)
    draft.tensors["embed_tokens.weight"] = torch.ones(REDUCED, HIDDEN)
    assert draft.refusal().startswith("embed_tokens.weight is the draft's own with 256")


@every_family
def test_own_embeddings_without_the_targets_padding_are_kept(make_draft, family):
    draft = make_draft(family, draft_vocab=1000, vocab_size=1000)
    own = torch.randn(1000, HIDDEN)
    draft.tensors["embed_tokens.weight"] = own
    model = draft.load()
    embedded = model.embed_input_ids(torch.arange(TARGET_VOCAB))
    assert torch.equal(embedded[:1000], own)
    assert not embedded[1000:].any()


def test_embeddings_of_all_rows_are_not_copied():
    own = torch.ones(TARGET_VOCAB, HIDDEN)
    checkpoint = Eagle3Checkpoint.read([("embed_tokens.weight", own)])
    checkpoint.fill_embedding_rows(TARGET_VOCAB, TARGET_VOCAB, HIDDEN)
    assert checkpoint.weights["embed_tokens.weight"].tensor is own


@every_family
def test_hidden_states_of_another_width_need_an_fc(make_draft, family):
    draft = make_draft(family, eagle_config={"use_aux_hidden_state": False})
    sentence = draft.refusal(target_config(hidden_size=2 * HIDDEN))
    assert sentence.startswith("hidden_size is 128 in the draft's config and 256 in")


@gqa_family
def test_a_part_beside_the_whole_is_refused(make_draft, family):
    draft = make_draft(family)
    name = "midlayer.self_attn.qkv_proj.weight"
    draft.tensors[name] = torch.zeros(2 * HIDDEN, 2 * HIDDEN)
    assert "a part and the whole of one tensor" in draft.refusal()


@gqa_family
def test_a_stacked_tensor_may_come_whole(make_draft, family):
    draft = make_draft(family)
    parts = [f"midlayer.self_attn.{name}_proj.weight" for name in "qkv"]
    whole = torch.cat([draft.tensors.pop(name) for name in parts])
    draft.tensors["midlayer.self_attn.qkv_proj.weight"] = whole
    draft.load()
    draft.tensors["midlayer.self_attn.qkv_proj.weight"] = whole[1:]
    assert draft.refusal().startswith("midlayer.self_attn.qkv_proj.weight has shape")


@every_family
@pytest.mark.parametrize("value", ["3", 0, 2.5])
def test_counts_are_positive_integers(make_draft, family, value):
    sentence = make_draft(family, num_aux_hidden_states=value).refusal()
    assert sentence.startswith(f"num_aux_hidden_states is {value!r}")

# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""Draft checkpoints that trip real servers, each through vLLM's own loader.

Distilled from public reports of 2025 and 2026: every case crashed, served wrong ids or
served uninitialised memory on stock vLLM 0.32.0 and 0.33.0, or is the neighbour of one
that did.
"""

import copy
from unittest import mock

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from tests.support.checkpoints import FAMILIES, HIDDEN, TARGET_VOCAB

REDUCED = 256
EVERY_FOURTH = torch.arange(0, TARGET_VOCAB, 4)
OFFSETS = EVERY_FOURTH - torch.arange(REDUCED)

every_family = pytest.mark.parametrize("family", FAMILIES)
gqa_family = pytest.mark.parametrize("family", ["llama", "qwen3"])


def hidden_states(rows=5, seed=1):
    return torch.randn(rows, HIDDEN, generator=torch.Generator().manual_seed(seed))


def parameters(model):
    """All that a checkpoint fills; embeddings are the target's, and unfilled here."""
    return {
        name: value.clone()
        for name, value in model.named_parameters()
        if name != "model.embed_tokens.weight"
    }


def assert_same_parameters(model, other):
    mine, theirs = parameters(model), parameters(other)
    assert mine.keys() == theirs.keys()
    assert [name for name in mine if not torch.equal(mine[name], theirs[name])] == []


def as_speculators(config, **changes):
    """The same draft as the speculators library writes it."""
    layer = {
        key: config[key] for key in config if key not in ("draft_vocab_size", "fc_norm")
    }
    return {
        "architectures": ["Eagle3Speculator"],
        "speculators_model_type": "eagle3",
        "speculators_version": "0.9.0",
        "speculators_config": {
            "algorithm": "eagle3",
            "proposal_methods": [{"speculative_tokens": 3}],
            "verifier": {"name_or_path": None, "architectures": []},
        },
        "draft_vocab_size": config["draft_vocab_size"],
        "transformer_layer_config": layer,
        "norm_before_residual": False,
        **changes,
    }


def zero_map(size=TARGET_VOCAB):
    return {
        "d2t": torch.zeros(size, dtype=torch.int64),
        "t2d": torch.ones(size, dtype=torch.bool),
    }


@every_family
def test_a1_full_vocabulary_with_a_zero_map_is_as_without(make_draft, family):
    plain, mapped = make_draft(family), make_draft(family)
    mapped.tensors |= zero_map()
    model = mapped.load()
    assert model.draft_id_to_target_id is None
    expected = plain.load().compute_logits(hidden_states())
    assert torch.equal(model.compute_logits(hidden_states()), expected)


@every_family
def test_a_mask_of_no_vocabularys_length_is_refused(make_draft, family):
    """Also where its values would not count, at load and in an update."""
    draft = make_draft(family)
    twice = {"t2d": torch.ones(2 * TARGET_VOCAB, dtype=torch.bool)}
    model = draft.load()
    with pytest.raises(ValueError, match=r"^t2d has 2048 entries, but the target's"):
        model.load_weights(iter(twice.items()))
    draft.tensors |= twice
    assert draft.refusal().startswith("t2d has 2048 entries, but the target's vocabul")


@gqa_family
@pytest.mark.parametrize("draft_vocab_size", [TARGET_VOCAB, None])
def test_a2_speculators_format_with_a_zero_map(make_draft, family, draft_vocab_size):
    plain, speculators = make_draft(family), make_draft(family)
    speculators.config = as_speculators(
        speculators.config, draft_vocab_size=draft_vocab_size
    )
    speculators.tensors = {
        name.replace("midlayer.", "layers.0."): value
        for name, value in (speculators.tensors | zero_map()).items()
    }
    model = speculators.load()
    assert model.draft_id_to_target_id is None
    expected = plain.load().compute_logits(hidden_states())
    assert torch.equal(model.compute_logits(hidden_states()), expected)


@every_family
def test_a3_reduced_vocabulary_without_a_map_is_refused(make_draft, family):
    sentence = make_draft(family, draft_vocab=REDUCED).refusal()
    assert sentence.startswith("d2t is missing: draft_vocab_size is 256,")
    assert "the target's vocabulary 1024" in sentence


@every_family
def test_a4_an_offset_out_of_range_is_refused_at_load(make_draft, family):
    draft = make_draft(family, draft_vocab=REDUCED)
    draft.tensors["d2t"] = OFFSETS.index_fill(0, torch.tensor([40]), 5000)
    assert draft.refusal() == (
        "d2t[40] maps draft id 40 to target id 5040, outside the target vocabulary "
        "[0, 1024). d2t must hold offsets (target id - draft id); re-export the draft."
    )


@every_family
def test_a5_a_map_or_head_of_another_size_is_refused(make_draft, family):
    draft = make_draft(family, draft_vocab=REDUCED)
    draft.tensors["d2t"] = OFFSETS[:-1]
    assert draft.refusal().startswith(
        "d2t has shape [255], but draft_vocab_size is 256"
    )
    draft.tensors["d2t"] = OFFSETS
    draft.tensors["lm_head.weight"] = draft.tensors["lm_head.weight"][:250]
    sentence = draft.refusal()
    assert sentence.startswith(
        "lm_head.weight has 250 rows, but draft_vocab_size is 256"
    )


@every_family
def test_a6_a_reduced_draft_without_the_size_key_says_so(make_draft, family):
    draft = make_draft(family, draft_vocab=REDUCED)
    del draft.config["draft_vocab_size"]
    draft.tensors["d2t"] = OFFSETS
    assert draft.refusal() == (
        "lm_head.weight has 256 rows, but draft_vocab_size is not set and so taken as "
        "vocab_size 1024. Set draft_vocab_size in the draft's config to 256, or "
        "re-export the draft's lm_head."
    )


@every_family
@pytest.mark.parametrize(
    "names",
    [
        ["fc.weight"],
        ["midlayer.self_attn.o_proj.weight"],
        ["midlayer.mlp.up_proj.weight", "norm.weight"],
    ],
)
def test_a7_missing_tensors_are_listed_exactly(make_draft, family, names):
    draft = make_draft(family)
    for name in names:
        del draft.tensors[name]
    listed = draft.refusal().split(". ")[0].removeprefix("The draft checkpoint lacks ")
    assert sorted(listed.split(", ")) == sorted(names)


@gqa_family
def test_a7_one_shard_of_a_stacked_parameter_is_missed_too(make_draft, family):
    draft = make_draft(family)
    del draft.tensors["midlayer.self_attn.k_proj.weight"]
    sentence = draft.refusal()
    assert "lacks midlayer.self_attn.k_proj.weight. " in sentence


@every_family
def test_a8_a_head_can_be_shared_only_in_full_vocabulary(make_draft, family):
    reduced = make_draft(family, draft_vocab=REDUCED, head=False)
    reduced.tensors["d2t"] = OFFSETS
    assert reduced.refusal().startswith("lm_head.weight is missing: draft_vocab_size")
    full = make_draft(family, head=False).load()
    assert not full.has_own_lm_head
    assert make_draft(family).load().has_own_lm_head


@every_family
@pytest.mark.parametrize(
    "keys",
    [
        {"eagle_aux_hidden_state_layer_ids": [1, 3, 5, 7]},
        {"eagle_config": {"eagle_aux_hidden_state_layer_ids": [1, 3, 5, 7]}},
        {"num_aux_hidden_states": 4, "eagle_aux_hidden_state_layer_ids": [1, 3, 5, 7]},
        {"num_aux_layers": 4, "eagle_aux_hidden_state_layer_ids": [1, 3, 5, 7]},
    ],
)
def test_a9_every_way_to_state_four_auxiliary_states(make_draft, family, keys):
    model = make_draft(family, aux=4, **keys).load()
    combined = model.combine_hidden_states(torch.ones(2, 4 * HIDDEN))
    assert combined.shape == (2, HIDDEN)


@every_family
def test_a9_a_contradiction_on_auxiliary_states_is_refused(make_draft, family):
    draft = make_draft(
        family,
        aux=4,
        num_aux_hidden_states=3,
        eagle_aux_hidden_state_layer_ids=[1, 3, 5, 7],
    )
    sentence = draft.refusal()
    assert "num_aux_hidden_states says 3" in sentence
    assert "eagle_aux_hidden_state_layer_ids says 4" in sentence


@every_family
def test_a9_an_fc_of_another_width_is_refused_by_name(make_draft, family):
    sentence = make_draft(family, aux=4).refusal()
    assert sentence.startswith("fc.weight has shape [128, 512], but the draft's config")
    assert "[128, 384]" in sentence and "num_aux_hidden_states" in sentence


@every_family
def test_a10_a_draft_config_of_its_own_vocabulary_maps_into_the_targets(
    make_draft, family
):
    draft = make_draft(family, draft_vocab=REDUCED, vocab_size=REDUCED)
    draft.tensors["d2t"] = OFFSETS
    logits = draft.load().compute_logits(hidden_states())
    assert logits.shape == (5, TARGET_VOCAB)
    finite = logits.isfinite().all(0).nonzero().flatten()
    assert torch.equal(finite, EVERY_FOURTH)
    assert int(logits.isfinite().sum()) == 5 * REDUCED


@every_family
@pytest.mark.parametrize("zeros", [False, True])
def test_a11_padding_past_the_targets_ids_is_never_proposed(make_draft, family, zeros):
    padded = 1088
    draft = make_draft(family, draft_vocab=padded, vocab_size=padded)
    # Let padding win wherever it is looked at.
    head = draft.tensors["lm_head.weight"]
    states = hidden_states()
    head[TARGET_VOCAB:] = states.sum(0)
    if zeros:
        draft.tensors |= zero_map(padded)
    model = draft.load()
    assert model.draft_id_to_target_id is None
    logits = model.compute_logits(states)
    assert logits.shape == (5, TARGET_VOCAB)
    torch.testing.assert_close(logits, states @ head[:TARGET_VOCAB].T)
    top = model.get_top_tokens(states)
    assert torch.equal(top, logits.argmax(-1))


@every_family
@pytest.mark.parametrize("draft_vocab", [TARGET_VOCAB, REDUCED])
@pytest.mark.parametrize("first_layer", ["midlayer.", "layers.0."])
def test_a12_names_with_a_prefix_mean_the_same(
    make_draft, family, draft_vocab, first_layer
):
    plain = make_draft(family, draft_vocab=draft_vocab)
    if draft_vocab == REDUCED:
        plain.tensors["d2t"] = OFFSETS
    prefixed = copy.deepcopy(plain)
    prefixed.folder = plain.folder.with_name("prefixed")
    prefixed.tensors = {
        "model." + name.replace("midlayer.", first_layer): value
        for name, value in plain.tensors.items()
    }
    assert_same_parameters(prefixed.load(), plain.load())


@every_family
@pytest.mark.parametrize(
    "name", ["draft_id_to_target_id", "eagle3_draft_model.d2t", "model.d2t"]
)
def test_a12_the_map_may_come_under_any_of_its_names(make_draft, family, name):
    draft = make_draft(family, draft_vocab=REDUCED)
    draft.tensors[name] = OFFSETS
    assert torch.equal(draft.load().draft_id_to_target_id, OFFSETS)


@every_family
def test_a12_two_names_for_one_tensor_are_refused(make_draft, family):
    draft = make_draft(family)
    name = "midlayer.mlp.up_proj.weight"
    draft.tensors["layers.0.mlp.up_proj.weight"] = draft.tensors[name].clone()
    assert "two names of one tensor" in draft.refusal()


@every_family
def test_a12_names_are_matched_whole(make_draft, family):
    """A substring match once took `lm_head` and `d2t` out of longer names."""
    draft = make_draft(family)
    draft.tensors["my_d2t.weight"] = torch.zeros(1)
    sentence = draft.refusal()
    assert sentence.startswith("The draft checkpoint holds my_d2t.weight, which")


def parallel_draft(make_draft, family):
    draft = make_draft(family, ptd_token_id=TARGET_VOCAB - 1)
    draft.tensors["mask_hidden"] = torch.randn(1, 1, 3 * HIDDEN)
    return draft


@every_family
def test_a13_parallel_drafting_takes_partial_updates(make_draft, family):
    draft = parallel_draft(make_draft, family)
    model = draft.load(parallel_drafting=True)
    mask_hidden = draft.tensors["mask_hidden"].flatten()
    assert torch.equal(model.mask_hidden.flatten(), mask_hidden)
    before, norm = parameters(model), torch.full((HIDDEN,), 2.0)
    assert model.load_weights([("norm.weight", norm)]) == {"model.norm.weight"}
    changed = [
        name
        for name, value in parameters(model).items()
        if not torch.equal(value, before[name])
    ]
    assert changed == ["model.norm.weight"]
    assert torch.equal(model.mask_hidden.flatten(), mask_hidden)


@every_family
def test_a13_parallel_drafting_needs_its_mask_at_first(make_draft, family):
    draft = parallel_draft(make_draft, family)
    draft.tensors["mask_hidden"] = draft.tensors["mask_hidden"][..., 1:]
    sentence = draft.refusal(parallel_drafting=True)
    assert sentence.startswith("mask_hidden has 383 elements, but the draft's config ")
    del draft.tensors["mask_hidden"]
    sentence = draft.refusal(parallel_drafting=True)
    assert sentence.startswith(
        "mask_hidden is missing although parallel_drafting is on"
    )


class WidestTensor(TorchDispatchMode):
    """Remembers which operations returned a tensor with `width` columns."""

    def __init__(self, width):
        super().__init__()
        self.width = width
        self.made_by = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        if isinstance(result, torch.Tensor) and result.shape[-1:] == (self.width,):
            self.made_by.append(str(func))
        return result


@every_family
def test_a14_greedy_drafting_in_reduced_vocabulary_never_widens(make_draft, family):
    draft = make_draft(family, draft_vocab=REDUCED)
    draft.tensors["d2t"] = OFFSETS
    model, states = draft.load(), hidden_states(64)
    with WidestTensor(TARGET_VOCAB) as wide:
        top = model.get_top_tokens(states)
    assert wide.made_by == []
    assert top.dtype == torch.int64
    with WidestTensor(TARGET_VOCAB) as wide:
        expected = model.compute_logits(states).argmax(-1)
    assert wide.made_by, "the probe sees no wide tensor where there must be one"
    assert torch.equal(top, expected)


@every_family
def test_a14_full_vocabulary_returns_the_heads_own_tensor(make_draft, family):
    model, head = make_draft(family).load(), torch.randn(64, TARGET_VOCAB)
    with mock.patch.object(model.logits_processor, "forward", return_value=head):
        assert model.compute_logits(hidden_states(64)) is head


@pytest.mark.parametrize("architectures", [..., ["LlamaEagle3DraftModel"]])
def test_a15_architectures_unknown_to_vllm_are_served_as_llama(
    make_draft, architectures
):
    draft, plain = make_draft("llama", architectures=architectures), make_draft("llama")
    if architectures is ...:
        assert "architectures" not in draft.config
    assert_same_parameters(draft.load(), plain.load())


@every_family
def test_a16_offsets_are_exact_or_refused(make_draft, family):
    draft = make_draft(family, draft_vocab=REDUCED)
    draft.tensors["d2t"] = OFFSETS.to(torch.int32)
    model = draft.load()
    assert model.draft_id_to_target_id.dtype == torch.int64
    assert torch.equal(model.draft_id_to_target_id, OFFSETS)
    draft.tensors["d2t"] = OFFSETS.to(torch.bfloat16)
    assert draft.refusal().startswith("d2t has dtype torch.bfloat16, which cannot hold")

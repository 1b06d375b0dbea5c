# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""Weight updates at run time as vLLM's own machinery delivers them.

Reinforcement learning starts an engine, often with dummy weights, and sends weights
later: tensor by tensor, or between the start and the end of a layerwise reload, during
which parameters live on the meta device and only their loaders can be written to.
"""

import pytest
import torch
from vllm.model_executor.layers.linear import UnquantizedLinearMethod
from vllm.model_executor.layers.vocab_parallel_embedding import (
    UnquantizedEmbeddingMethod,
)
from vllm.model_executor.model_loader.reload import (
    finalize_layerwise_reload,
    initialize_layerwise_reload,
)
from vllm.model_executor.models.registry import ModelRegistry

from tests.support.checkpoints import FAMILIES, HIDDEN, TARGET_VOCAB
from tests.support.drafts import draft_environment, engine_config
from tests.support.stock import CLASSES, build, make_ready

REDUCED = 256
OFFSETS = torch.arange(0, TARGET_VOCAB, 4) - torch.arange(REDUCED)
TO_THE_END = torch.full((REDUCED,), TARGET_VOCAB - REDUCED)
LAST_IDS = torch.arange(TARGET_VOCAB - REDUCED, TARGET_VOCAB)
SHUFFLED = torch.randperm(TARGET_VOCAB, generator=torch.Generator().manual_seed(0))

every_family = pytest.mark.parametrize("family", FAMILIES)


@pytest.fixture
def unpacked(monkeypatch):
    """Weights stay as loaded, as on an accelerator; a CPU would pack them."""

    def keep(method, layer):
        layer.cpu_linear = torch.nn.functional.linear

    for method in (UnquantizedLinearMethod, UnquantizedEmbeddingMethod):
        monkeypatch.setattr(method, "process_weights_after_loading", keep)


@pytest.fixture
def serve(unpacked):
    """`serve(draft)` gives a model as a worker holds it, and its config."""

    def load(draft, *, dummy=False, **speculative):
        draft.write()
        config = engine_config(draft.folder, **speculative)
        name = CLASSES[draft.config["model_type"].partition("_")[0]][1]
        model_class = ModelRegistry.models[name].load_model_cls()
        model = build(model_class, config, {} if dummy else draft.tensors)
        make_ready(model, config)
        return model, config

    return load


def reload(model, config, tensors, *, one_by_one):
    """A whole reload in vLLM's layerwise way."""
    calls = [[item] for item in tensors.items()] if one_by_one else [tensors.items()]
    with draft_environment(config):
        initialize_layerwise_reload(model)
        for call in calls:
            model.load_weights(iter(call))
        draft_model = config.speculative_config.draft_model_config
        finalize_layerwise_reload(model, draft_model)


def integers(*shape):
    """Small ones, whose products add up to the same in any order."""
    return torch.randint(-4, 5, shape).float()


def scored_ids(model):
    logits = model.compute_logits(torch.ones(1, HIDDEN))
    assert logits.shape == (1, TARGET_VOCAB)
    return logits[0].isfinite().nonzero().flatten()


def reduced(make_draft, family="llama", **changes):
    draft = make_draft(family, draft_vocab=REDUCED, **changes)
    draft.tensors["d2t"] = OFFSETS
    return draft


ways = pytest.mark.parametrize("one_by_one", [False, True])


@every_family
@ways
def test_a_reload_brings_a_new_map_and_new_weights(
    make_draft, serve, family, one_by_one
):
    model, config = serve(reduced(make_draft, family))
    parameter, target_ids = model.draft_id_to_target_id, model.target_ids
    new = make_draft(family, draft_vocab=REDUCED, seed=1)
    new.tensors["d2t"] = TO_THE_END
    head = new.tensors["lm_head.weight"] = integers(REDUCED, HIDDEN)
    reload(model, config, new.tensors, one_by_one=one_by_one)
    assert torch.equal(model.draft_id_to_target_id, TO_THE_END)
    assert torch.equal(scored_ids(model), LAST_IDS)
    states = integers(4, HIDDEN)
    logits = model.compute_logits(states)
    assert torch.equal(model.get_top_tokens(states), logits.argmax(-1))
    assert torch.equal(logits[:, LAST_IDS], states @ head.T)
    # Captured CUDA graphs read these very tensors.
    assert model.draft_id_to_target_id.data_ptr() == parameter.data_ptr()
    assert model.target_ids.data_ptr() == target_ids.data_ptr()


@every_family
def test_a_reload_without_a_map_keeps_it(make_draft, serve, family):
    model, config = serve(reduced(make_draft, family))
    new = make_draft(family, draft_vocab=REDUCED, seed=1)
    reload(model, config, new.tensors, one_by_one=False)
    assert torch.equal(model.draft_id_to_target_id, OFFSETS)
    assert torch.equal(scored_ids(model), torch.arange(0, TARGET_VOCAB, 4))


@ways
def test_a_reload_of_a_draft_whose_map_came_or_went_at_load(
    make_draft, serve, one_by_one
):
    """Sizes alone promised a map to the one and none to the other."""
    unpadded = make_draft("llama", draft_vocab=1000, vocab_size=1000)
    model, config = serve(unpadded)
    reload(model, config, unpadded.tensors, one_by_one=one_by_one)
    assert torch.equal(scored_ids(model), torch.arange(1000))

    permuted = make_draft("llama")
    permuted.tensors["d2t"] = SHUFFLED - torch.arange(TARGET_VOCAB)
    model, config = serve(permuted)
    states = torch.randn(4, HIDDEN)
    before = model.compute_logits(states)
    reload(model, config, permuted.tensors, one_by_one=one_by_one)
    assert torch.equal(model.compute_logits(states), before)
    assert torch.equal(model.get_top_tokens(states), before.argmax(-1))


@ways
def test_a_reload_brings_a_new_mask(make_draft, serve, one_by_one):
    draft = reduced(make_draft, ptd_token_id=TARGET_VOCAB - 1)
    draft.tensors["mask_hidden"] = torch.ones(1, 1, 3 * HIDDEN)
    model, config = serve(draft, parallel_drafting=True)
    kept = {name: t for name, t in draft.tensors.items() if name != "mask_hidden"}
    reload(model, config, kept, one_by_one=one_by_one)
    assert torch.equal(model.mask_hidden, torch.ones(1, 3 * HIDDEN))
    new = draft.tensors | {"mask_hidden": torch.full((1, 1, 3 * HIDDEN), 2.0)}
    reload(model, config, new, one_by_one=one_by_one)
    assert torch.equal(model.mask_hidden, torch.full((1, 3 * HIDDEN), 2.0))


def test_a_map_cannot_come_or_go_in_the_middle_of_a_reload(make_draft, serve):
    permutation = {"d2t": SHUFFLED - torch.arange(TARGET_VOCAB)}
    plain, permuted = make_draft("llama"), make_draft("llama")
    permuted.tensors |= permutation
    model, config = serve(plain)
    with pytest.raises(ValueError, match="changes whether draft ids are mapped"):
        reload(model, config, permutation, one_by_one=False)
    model, config = serve(permuted)
    zeros = {"d2t": torch.zeros(TARGET_VOCAB, dtype=torch.int64)}
    with pytest.raises(ValueError, match="changes whether draft ids are mapped"):
        reload(model, config, zeros, one_by_one=False)


@every_family
def test_a_dummy_start_takes_any_part_as_an_update(make_draft, serve, family):
    draft = reduced(make_draft, family)
    model, _ = serve(draft, dummy=True)
    assert model.load_weights([("norm.weight", torch.ones(HIDDEN))]) == {
        "model.norm.weight"
    }
    model.load_weights([("d2t", OFFSETS)])
    head = draft.tensors["lm_head.weight"]
    model.load_weights([("lm_head.weight", head)])
    assert torch.equal(scored_ids(model), torch.arange(0, TARGET_VOCAB, 4))
    assert torch.equal(model.lm_head.weight, head)


@every_family
def test_a_reduced_dummy_never_gets_the_targets_head(make_draft, serve, family):
    """vLLM's runners decide by this flag, and a dummy reads no checkpoint."""
    assert serve(reduced(make_draft, family), dummy=True)[0].has_own_lm_head
    assert not serve(make_draft(family), dummy=True)[0].has_own_lm_head


def test_a_parameter_that_no_loader_filled_is_refused(make_draft, serve):
    model, _ = serve(reduced(make_draft), dummy=True)
    model.draft_id_to_target_id.data.fill_(2**40)
    with pytest.raises(
        ValueError, match=r"^draft_id_to_target_id\[0\] maps draft id 0"
    ):
        model.process_weights_after_loading()


# On a CPU, where linear layers compute from packed copies.


@every_family
def test_a_packed_head_is_packed_again(make_draft, family):
    model = make_draft(family).load()
    head = integers(TARGET_VOCAB, HIDDEN)
    model.load_weights([("lm_head.weight", head)])
    states = integers(3, HIDDEN)
    assert torch.equal(model.compute_logits(states), states @ head.T)


@every_family
def test_an_update_of_a_packed_layer_is_refused_as_a_whole(make_draft, family):
    model = make_draft(family).load()
    norm = model.model.norm.weight.clone()
    update = [
        ("norm.weight", torch.zeros(HIDDEN)),
        ("fc.weight", torch.zeros(HIDDEN, 3 * HIDDEN)),
    ]
    with pytest.raises(
        ValueError, match="fc.weight cannot be updated: vLLM has packed"
    ):
        model.load_weights(update)
    assert torch.equal(model.model.norm.weight, norm)

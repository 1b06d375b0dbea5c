# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""What a report says about a draft that would be served."""

import pytest
import torch

from tests.check.conftest import MakePair, errors, warnings
from tests.support.checkpoints import FAMILIES, HIDDEN, TARGET_VOCAB
from tests.support.quantisation import (
    compressed_tensors,
    matrices,
    to_fp8,
    to_int8,
    to_packed,
)
from vllm_eagle3.check.report import Severity


@pytest.mark.parametrize("family", FAMILIES)
def test_a_sound_draft_serves(make_pair: MakePair, family: str):
    report = make_pair(family, 256).check()
    assert report.findings == ()
    assert report.verdict == "serves"
    assert report.exit_code(strict=True) == 0
    assert report.model is not None
    assert report.model.family.lower().startswith(family)


def test_sizes_and_the_way_of_an_id_are_told(make_pair: MakePair):
    vocabulary = make_pair("llama", 256).check().vocabulary
    assert vocabulary is not None
    assert (vocabulary.target, vocabulary.draft_config, vocabulary.draft) == (
        TARGET_VOCAB,
        TARGET_VOCAB,
        256,
    )
    assert vocabulary.case == "reduced"
    assert vocabulary.path == "reduced vocabulary, 256 of 1024, remapped"
    assert vocabulary.map_source == "d2t"


def test_a_map_goes_before_its_mask(make_pair: MakePair):
    pair = make_pair("llama", 256)
    pair.tensors["t2d"] = torch.arange(TARGET_VOCAB) % 4 == 0
    vocabulary = pair.check().vocabulary
    assert vocabulary is not None
    assert vocabulary.map_source == "d2t"


def test_a_map_made_of_the_mask_is_told(make_pair: MakePair):
    pair = make_pair("llama", 256)
    del pair.tensors["d2t"]
    pair.tensors["t2d"] = torch.arange(TARGET_VOCAB) % 4 == 0
    vocabulary = pair.check().vocabulary
    assert vocabulary is not None
    assert (vocabulary.case, vocabulary.map_source) == ("reduced", "t2d")


@pytest.mark.parametrize(
    "draft_vocab, stock, greedy, probabilistic",
    [
        # Of bfloat16 logits, see cost.py; vLLM serves float32 checkpoints in it.
        (
            256,
            5 * 8 * 256 + 2 * 2 * 256 + 2 * 2 * 1024,
            2 * 256 + 8,
            8 * 256 + 2 * 256 + 2 * 2 * 1024,
        ),
        (1024, 2 * 1024, 2 * 1024, 2 * 1024),
    ],
)
def test_the_cost_of_a_step(
    make_pair: MakePair, draft_vocab: int, stock: int, greedy: int, probabilistic: int
):
    report = make_pair("llama", draft_vocab).check()
    costs = {cost.sampling: cost for cost in report.costs}
    assert (costs["greedy"].stock, costs["greedy"].here) == (stock, greedy)
    assert costs["probabilistic"].stock == stock
    assert costs["probabilistic"].here == probabilistic


def test_an_unpadded_vocabulary_looks_up_no_id(make_pair: MakePair):
    pair = make_pair("llama", 256, vocab_size=256)
    del pair.tensors["d2t"]
    greedy, probabilistic = pair.check().costs
    assert (greedy.here, greedy.route) == (512, "argmax over the draft's own ids")
    assert probabilistic.route == "logits padded to the target's ids"


def test_greedy_drafting_that_is_left_to_vllm(make_pair: MakePair, monkeypatch):
    monkeypatch.setenv("VLLM_EAGLE3_DISABLE_LOCAL_ARGMAX", "1")
    greedy, probabilistic = make_pair("llama", 256).check().costs
    assert greedy.here == probabilistic.here
    assert greedy.route.endswith("in one pass, then argmax over the target's ids")


def test_a_draft_without_auxiliary_states(make_pair: MakePair):
    pair = make_pair(eagle_config={"use_aux_hidden_state": False})
    del pair.config["eagle_aux_hidden_state_layer_ids"], pair.tensors["fc.weight"]
    model = pair.check().model
    assert model is not None
    assert (model.auxiliary.count, model.auxiliary.ids) == (0, None)
    assert "use_aux_hidden_state is false" in model.auxiliary.source


@pytest.mark.parametrize("place", ["top", "nested"])
def test_auxiliary_layers_and_their_key(make_pair: MakePair, place: str):
    ids = "eagle_aux_hidden_state_layer_ids"
    changes = {} if place == "top" else {ids: ..., "eagle_config": {ids: [1, 4, 6]}}
    model = make_pair(**changes).check().model
    assert model is not None
    assert model.auxiliary.ids == (1, 4, 6)
    assert model.auxiliary.count == 3
    assert model.auxiliary.source.endswith(ids)


def test_layers_that_vllm_would_guess_are_a_warning(make_pair: MakePair):
    report = make_pair(eagle_aux_hidden_state_layer_ids=...).check()
    (warning,) = warnings(report)
    assert "eagle_aux_hidden_state_layer_ids is not set" in warning
    assert report.verdict == "serves with warnings"
    assert (report.exit_code(strict=False), report.exit_code(strict=True)) == (0, 1)
    assert report.model is not None
    assert report.model.auxiliary.ids == (2, 4, 5)
    assert report.model.auxiliary.source.startswith("vLLM's own choice")


def test_norms_are_told(make_pair: MakePair):
    pair = make_pair(norm_before_fc=True, norm_output=True, norm_before_residual=True)
    pair.tensors["input_norm.weight"] = torch.ones(3 * HIDDEN)
    model = pair.check().model
    assert model is not None
    assert [norm.partition(":")[0] for norm in model.norms] == [
        "norm_before_fc",
        "norm_before_residual",
        "norm_output",
    ]


def test_what_is_the_targets_is_told(make_pair: MakePair):
    pair = make_pair()
    assert pair.check().sharing["embed_tokens"].startswith("the target's")
    assert pair.check().sharing["lm_head"].startswith("the draft's own")
    del pair.tensors["lm_head.weight"]
    assert pair.check().sharing["lm_head"].startswith("the target's")


def test_a_head_that_is_the_embedding_is_told(make_pair: MakePair):
    pair = make_pair(tie_word_embeddings=True)
    pair.tensors["embed_tokens.weight"] = pair.tensors.pop("lm_head.weight")
    report = pair.check()
    assert report.verdict == "serves"
    assert report.sharing["lm_head"] == "the draft's embed_tokens (tie_word_embeddings)"


def test_parallel_drafting_is_asked_for_and_told(make_pair: MakePair):
    pair = make_pair(ptd_token_id=3)
    pair.tensors["mask_hidden"] = torch.zeros(1, 1, 3 * HIDDEN)
    report = pair.check(tokens=5)
    assert errors(report) == []
    assert report.speculative_config == {
        "method": "eagle3",
        "model": str(pair.draft_folder),
        "num_speculative_tokens": 5,
        "parallel_drafting": True,
    }
    assert report.model is not None and report.model.parallel_drafting


def test_tokens_come_from_a_speculators_config(make_pair: MakePair):
    pair = make_pair()
    proposal = {"proposal_methods": [{"speculative_tokens": 7}]}
    pair.config["speculators_config"] = proposal
    assert pair.check().speculative_config["num_speculative_tokens"] == 7


def test_a_target_in_a_format_of_other_machines_does_not_matter(make_pair: MakePair):
    pair = make_pair()
    pair.target["quantization_config"] = {"quant_method": "no-such-method"}
    assert pair.check().verdict == "serves"


@pytest.mark.parametrize("kind", ["int8", "fp8", "int4"])
def test_quantised_modules_by_the_checkpoints_names(make_pair: MakePair, kind: str):
    """Whether or not this machine has kernels for the format."""
    pair = make_pair()
    names = matrices(pair.tensors, "lm_head", "fc")
    if kind == "int4":
        to_packed(pair.tensors, names, bits=4, group=32)
    elif kind == "fp8":
        to_fp8(pair.tensors, names, rows=True)
    else:
        to_int8(pair.tensors, names)
    keys = {"ignore": ["lm_head", "fc"]}
    pair.config["quantization_config"] = compressed_tensors(kind, **keys)
    report = pair.check()
    assert errors(report) == []
    assert report.quantisation is not None
    assert report.quantisation.method == "compressed-tensors"
    assert set(report.quantisation.modules) == set(names)
    assert [finding.severity for finding in report.findings] == [Severity.NOTE]


def test_a_plain_draft_is_not_quantised(make_pair: MakePair):
    quantisation = make_pair().check().quantisation
    assert quantisation is not None
    assert (quantisation.method, quantisation.modules) == (None, ())

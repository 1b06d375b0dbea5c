# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""Checkpoints may carry `d2t` whatever the size of their vocabulary.

vLLM PR #53458 took the map from drafts of the full vocabulary. Exporters that always
write `d2t` and `t2d`, as SpecForge does, write zeros for such drafts; these load, and
propose what they propose without.
"""

import pytest
import torch

from tests.support.checkpoints import (
    FAMILIES,
    HIDDEN,
    TARGET_VOCAB,
    DraftShape,
    draft_config,
    draft_tensors,
    write_checkpoint,
)
from tests.support.drafts import load_draft

REDUCED = TARGET_VOCAB // 4


def load(folder, family, vocab, tensors, declared=True):
    config = draft_config(
        family,
        draft_vocab_size=vocab if declared else ...,
        eagle_aux_hidden_state_layer_ids=[2, 4, 5],
    )
    return load_draft(write_checkpoint(folder, config, tensors))


def logits_of(model):
    hidden = torch.randn(5, HIDDEN, generator=torch.Generator().manual_seed(1))
    return model.compute_logits(hidden)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("declared", [True, False], ids=["full", "default"])
def test_a_full_vocabulary_draft_with_d2t_is_the_draft_without(
    tmp_path, family, declared
):
    tensors = draft_tensors(DraftShape(family))
    maps = {
        "d2t": torch.zeros(TARGET_VOCAB, dtype=torch.int64),
        "t2d": torch.ones(TARGET_VOCAB, dtype=torch.bool),
    }
    with_map = load(tmp_path / "with", family, TARGET_VOCAB, tensors | maps, declared)
    without = load(tmp_path / "without", family, TARGET_VOCAB, tensors, declared)
    assert with_map.draft_id_to_target_id is None
    assert torch.equal(logits_of(with_map), logits_of(without))


@pytest.mark.parametrize("family", FAMILIES)
def test_a_reduced_vocabulary_draft_is_remapped_by_its_d2t(tmp_path, family):
    ids = torch.arange(REDUCED) * 4 + 1
    mask = torch.zeros(TARGET_VOCAB, dtype=torch.bool)
    mask[ids] = True
    tensors = draft_tensors(DraftShape(family, draft_vocab=REDUCED))
    maps = {"d2t": ids - torch.arange(REDUCED), "t2d": mask}
    model = load(tmp_path / "draft", family, REDUCED, tensors | maps)
    assert torch.equal(model.draft_id_to_target_id.data, maps["d2t"])
    logits = logits_of(model)
    assert logits.shape == (5, TARGET_VOCAB)
    assert torch.equal(logits.isfinite().all(0), mask)

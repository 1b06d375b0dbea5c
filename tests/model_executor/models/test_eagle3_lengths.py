# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""For which requests a draft proposes tokens, and what is said where not for all."""

import logging

import pytest
from vllm.model_executor.models.eagle3_config import Eagle3DraftConfig

from tests.support.checkpoints import FAMILIES
from tests.support.drafts import engine_config
from tests.support.ropes import ORIGINAL, YARN

SHORT = {"max_position_embeddings": 64}
DOUBT = (
    "The target is served with 512 tokens, and the draft's config is for 64: while a "
    "longer request runs, vLLM's V1 runner proposes no draft tokens, for this and for "
    "all other requests in its batch. Raise max_position_embeddings in the draft's "
    "config, or lower --max-model-len."
)


def lengths_of(engine):
    lengths = Eagle3DraftConfig.resolve(engine).lengths
    return lengths.served, lengths.drafted


@pytest.fixture
def model_runner_v2(monkeypatch):
    def choose(engine):
        always = property(lambda _: True)
        monkeypatch.setattr(type(engine), "use_v2_model_runner", always)

    return choose


@pytest.mark.parametrize("family", FAMILIES)
def test_a_draft_for_short_requests_is_loaded_with_a_warning(
    make_draft, eagle3_log, family
):
    make_draft(family, **SHORT).load()
    assert eagle3_log(logging.WARNING) == [DOUBT]


def test_nothing_is_said_of_a_limit_that_is_chosen(make_draft, eagle3_log):
    model = make_draft("llama").load(max_model_len=64)
    assert (model.draft.lengths.served, model.draft.lengths.drafted) == (512, 64)
    assert eagle3_log(logging.WARNING) == []


def test_nothing_is_said_of_a_draft_for_all_requests(make_draft, eagle3_log):
    model = make_draft("llama").load()
    assert (model.draft.lengths.served, model.draft.lengths.drafted) == (512, 512)
    assert eagle3_log(logging.WARNING) == []


def test_model_runner_v2_drafts_for_all_requests(make_draft, model_runner_v2):
    engine = engine_config(make_draft("llama", **SHORT).write())
    assert lengths_of(engine) == (512, 64)
    model_runner_v2(engine)
    assert lengths_of(engine) == (512, 512)


def test_a_table_need_not_reach_beyond_what_is_drafted(make_draft, model_runner_v2):
    rope = YARN | {ORIGINAL: 16}
    engine = engine_config(make_draft("llama", rope_scaling=rope, **SHORT).write())
    assert lengths_of(engine) == (512, 64)
    model_runner_v2(engine)
    with pytest.raises(ValueError, match="512. Start with --max-model-len 64 or"):
        Eagle3DraftConfig.resolve(engine)


@pytest.mark.parametrize("kind", ["default", "dynamic"])
def test_a_table_that_vllm_leaves_short_is_refused(make_draft, kind):
    """As vLLM 0.33.0 leaves those whose frequencies would change."""
    rope = {"rope_type": kind, "factor": 8.0}
    engine = engine_config(make_draft("llama", rope_scaling=rope).write())
    hf_config = engine.speculative_config.draft_model_config.hf_config
    hf_config.max_position_embeddings = 511
    with pytest.raises(
        ValueError, match="after 511 positions, max_position_embeddings"
    ):
        Eagle3DraftConfig.resolve(engine)
    hf_config.max_position_embeddings = 512
    assert lengths_of(engine) == (512, 512)

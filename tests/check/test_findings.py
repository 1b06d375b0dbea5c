# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""Errors: the server's first, then what else there is to mend."""

import torch

from tests.check.conftest import MakePair, Pair, errors, warnings
from tests.support.drafts import load_draft
from vllm_eagle3.check.report import Severity, Stage


def server_error(pair: Pair) -> str:
    """What vLLM's loading of this draft ends with."""
    try:
        load_draft(pair.write().draft_folder, pair.target)
    except ValueError as error:
        return str(error)
    raise AssertionError("the server would serve this draft")


def test_the_first_error_is_the_servers_and_the_others_follow(make_pair: MakePair):
    pair = make_pair("llama", 256)
    pair.tensors["d2t"][40] = 50_000
    pair.tensors["lm_head.weight"] = torch.zeros(250, 128)
    del pair.tensors["fc.weight"]
    first, *others = pair.check().of(Severity.ERROR)
    assert first.message == server_error(pair)
    assert first.stage is Stage.LOADING
    assert {finding.stage for finding in others} == {Stage.BEYOND}
    said = " ".join(finding.message for finding in (first, *others))
    assert "d2t[40] maps draft id 40 to target id 50040" in said
    assert "lm_head.weight has 250 rows" in said
    assert "The draft checkpoint lacks fc.weight" in said


def test_a_fault_of_the_config_does_not_hide_one_of_the_map(make_pair: MakePair):
    pair = make_pair("llama", 256, target_hidden_size=64)
    pair.tensors["d2t"][1] = 0
    pair.tensors["d2t"][2] = -1
    first, second = pair.check().of(Severity.ERROR)
    assert first.stage is Stage.CONSTRUCTION
    assert first.message.startswith("target_hidden_size is 64")
    assert "both to target id 1" in second.message


def test_an_architecture_that_nobody_knows(make_pair: MakePair):
    pair = make_pair("llama", 256, architectures=["NoSuchModel"])
    pair.tensors["d2t"][40] = 50_000
    first, *others = pair.check().of(Severity.ERROR)
    assert first.stage is Stage.CONFIG
    assert "NoSuchModel" in first.message
    assert any("d2t[40]" in finding.message for finding in others)


def test_parallel_drafting_without_a_mask_token(make_pair: MakePair):
    pair = make_pair(parallel_drafting=True)
    pair.tensors["mask_hidden"] = torch.zeros(1, 1, 384)
    assert any("mask_token_id" in message for message in errors(pair.check()))


def test_warnings_of_the_load_are_told(make_pair: MakePair):
    pair = make_pair()
    pair.tensors["layers.1.hidden_norm.weight"] = torch.ones(128)
    pair.tensors["midlayer.self_attn.rotary_emb.inv_freq"] = torch.ones(16)
    report = pair.check()
    assert any("inv_freq" in warning for warning in warnings(report))


def test_what_vllm_says_about_itself_is_no_finding(make_pair: MakePair):
    """vLLM warns of its CPU backend and of batch sizes whatever the draft is."""
    assert make_pair().check().findings == ()

# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""Errors: the server's first, then what else there is to mend."""

import pydantic
import pytest
import torch
from vllm.model_executor.models import eagle3_config

from tests.check.conftest import MakePair, Pair, errors, warnings
from tests.support.drafts import load_draft
from tests.support.quantisation import compressed_tensors, matrices, to_int8
from vllm_eagle3.check import dry_run
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


def test_what_the_proposer_refuses_is_an_error(make_pair: MakePair, monkeypatch):
    """The model asks for as much when it is built; without that, this is left."""
    monkeypatch.setattr(eagle3_config, "mask_token_id", lambda _: 7)
    pair = make_pair(parallel_drafting=True)
    pair.tensors["mask_hidden"] = torch.zeros(1, 1, 384)
    (error,) = pair.check().of(Severity.ERROR)
    assert error.stage is Stage.PROPOSER
    assert error.message.startswith("For parallel drafting, the draft model config")


def test_a_head_is_judged_where_no_model_can_be_built(make_pair: MakePair):
    pair = make_pair("llama", 256, architectures=["NoSuchModel"])
    pair.tensors["lm_head.weight"] = torch.zeros(250, 128)
    said = [f.message for f in pair.check().findings if f.stage is Stage.BEYOND]
    assert any("lm_head.weight has 250 rows" in message for message in said)


def test_warnings_of_the_load_are_told(make_pair: MakePair):
    pair = make_pair()
    pair.tensors["layers.1.hidden_norm.weight"] = torch.ones(128)
    pair.tensors["midlayer.self_attn.rotary_emb.inv_freq"] = torch.ones(16)
    report = pair.check()
    assert any("inv_freq" in warning for warning in warnings(report))


class Odd(pydantic.BaseModel):
    key: int

    @pydantic.field_validator("key")
    @classmethod
    def is_even(cls, key: int) -> int:
        if key % 2:
            raise ValueError("key is odd. Make it even.")
        return key


def test_errors_are_told_in_the_servers_words():
    assert dry_run.sentence(ValueError("d2t is missing.")) == "d2t is missing."
    assert dry_run.sentence(KeyError("rope")) == "KeyError: 'rope'"
    with pytest.raises(pydantic.ValidationError) as refused:
        Odd(key=3)
    assert dry_run.sentence(refused.value) == "key is odd. Make it even."


@pytest.mark.parametrize(
    "first, refused",
    [
        (ValueError("Failed to find a kernel that can implement it."), False),
        (RuntimeError("no kernel image is available"), False),
        (AttributeError("'_OpNamespace' '_C' object has no attribute 'pack'"), False),
        (AttributeError("'NoneType' object has no attribute 'to_int'"), False),
        (KeyError(0), False),
        (ValueError("fc.weight has no scale."), True),
        (AttributeError("'str' object has no attribute 'items'"), True),
        (KeyError("weights"), True),
    ],
    ids=str,
)
def test_a_kernel_that_this_machine_lacks_is_no_fault(
    make_pair: MakePair, monkeypatch, first: Exception, refused: bool
):
    pair = make_pair()
    to_int8(pair.tensors, names := matrices(pair.tensors, "lm_head", "fc"))
    pair.config["quantization_config"] = compressed_tensors(
        "int8", ignore=["lm_head", "fc"]
    )
    build, attempts = dry_run._build, []

    def fail_once(run: dry_run.DryRun):
        attempts.append(run)
        if len(attempts) == 1:
            raise first
        return build(run)

    monkeypatch.setattr(dry_run, "_build", fail_once)
    report = pair.check()
    assert errors(report)[:1] == ([dry_run.sentence(first)] if refused else [])
    assert len(attempts) == (1 if refused else 2)
    if not refused:
        assert report.quantisation is not None
        assert set(report.quantisation.modules) == set(names)


def test_what_vllm_says_about_itself_is_no_finding(make_pair: MakePair):
    """vLLM warns of its CPU backend and of batch sizes whatever the draft is."""
    assert make_pair().check().findings == ()

# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""Drafts and targets on the Hub, by way of a hub on this machine; no network."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from huggingface_hub import constants

from tests.check.conftest import MakePair, Pair
from tests.check.fake_hub import COMMIT, FakeHub
from vllm_eagle3 import cli


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeHub]:
    """A hub that huggingface_hub takes for the Hub, and an empty cache."""
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(constants, "HF_HUB_DISABLE_PROGRESS_BARS", True)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "cache"))
    with FakeHub().running() as fake:
        monkeypatch.setattr(constants, "ENDPOINT", fake.url)
        monkeypatch.setattr(
            constants,
            "HUGGINGFACE_CO_URL_TEMPLATE",
            fake.url + "/{repo_id}/resolve/{revision}/{filename}",
        )
        yield fake


def publish(hub: FakeHub, pair: Pair) -> None:
    pair.write()
    hub.repositories = {
        "someone/draft": pair.draft_folder,
        "someone/target": pair.target_folder,
    }


def check(capsys, *arguments: str) -> tuple[int, dict]:
    names = ["someone/draft", "--target", "someone/target"]
    code = cli.main(["check", *names, "--json", *arguments])
    return code, json.loads(capsys.readouterr().out)


def large_pair(make_pair: MakePair) -> Pair:
    """A draft with some megabytes of weights, which nobody needs to fetch."""
    pair = make_pair("llama", 256)
    pair.tensors["embed_tokens.weight"] = torch.zeros(1024, 128)
    pair.tensors["zz.padding"] = torch.zeros(4_000_000)
    return pair


@pytest.mark.parametrize("files", ["safetensors", "bin"])
def test_headers_and_the_map_are_all_that_is_fetched(
    hub: FakeHub, make_pair: MakePair, capsys, files: str
):
    pair = large_pair(make_pair)
    publish(hub, pair)
    weights = pair.draft_folder / "model.safetensors"
    if files == "bin":
        weights.unlink()
        weights = pair.draft_folder / "pytorch_model.bin"
        # Zipped tensors up to 4 MiB are fetched, as a map may be one.
        torch.save(pair.tensors, weights)
    code, report = check(capsys)
    (error,) = [f["message"] for f in report["findings"]]
    assert code == 2
    assert error.startswith("The draft checkpoint holds zz.padding")
    assert report["vocabulary"]["map_source"] == "d2t"
    assert report["draft"]["where"] == f"Hub, commit {COMMIT}"
    limit = 400_000 if files == "safetensors" else 4_000_000
    assert 0 < hub.served[weights.name] < limit < weights.stat().st_size


def test_a_folder_and_the_hub_say_the_same(hub: FakeHub, make_pair: MakePair, capsys):
    pair = make_pair("llama", 256, eagle_aux_hidden_state_layer_ids=...)
    pair.tensors["d2t"][7] = 9999
    publish(hub, pair)
    _, remote = check(capsys)
    local = json.loads(json.dumps(pair.check().to_json()))
    for place in ("seconds", "draft", "target", "speculative_config"):
        del remote[place], local[place]
    assert remote == local


def test_a_revision_is_asked_for_and_served_with(
    hub: FakeHub, make_pair: MakePair, capsys
):
    publish(hub, make_pair())
    code, report = check(capsys, "--revision", "v1", "--target-revision", "v1")
    assert code == 0
    assert report["speculative_config"] == {
        "method": "eagle3",
        "model": "someone/draft",
        "revision": "v1",
        "num_speculative_tokens": 3,
    }


def refusal(capsys, *arguments: str) -> str:
    assert cli.main(["check", *arguments]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    return line.removeprefix("vllm-eagle3: error: ")


PAIR = ("someone/draft", "--target", "someone/target")


def test_a_name_that_the_hub_does_not_know(hub: FakeHub, make_pair: MakePair, capsys):
    publish(hub, make_pair())
    line = refusal(capsys, "someone/drafd", *PAIR[1:])
    assert line.startswith("someone/drafd is neither a folder here nor a model on")


def test_a_revision_that_there_is_not(hub: FakeHub, make_pair: MakePair, capsys):
    publish(hub, make_pair())
    line = refusal(capsys, *PAIR, "--revision", "v2")
    assert line.startswith("someone/draft has no revision v2 on the Hub.")


def test_a_gated_model(hub: FakeHub, make_pair: MakePair, capsys):
    publish(hub, make_pair())
    hub.gated.add("someone/target")
    line = refusal(capsys, *PAIR)
    assert line.startswith("someone/target is gated on the Hub.")


def test_no_network(hub: FakeHub, monkeypatch, capsys):
    monkeypatch.setattr(constants, "ENDPOINT", "http://127.0.0.1:9")
    line = refusal(capsys, *PAIR)
    assert "the Hub cannot be reached" in line


def test_offline_by_choice(hub: FakeHub, monkeypatch, capsys):
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    line = refusal(capsys, *PAIR)
    assert "the Hub cannot be reached" in line


def test_no_vllm_code_is_needed_for_a_name_that_cannot_be(capsys):
    line = refusal(capsys, "a/b/c", "--target", "someone/target")
    assert line == "DRAFT a/b/c is neither a folder here nor a Hub id (owner/name)."

# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""Drafts and targets on the Hub, by way of a hub on this machine; no network."""

import json
from collections.abc import Iterator
from pathlib import Path

import huggingface_hub
import pytest
import torch
from huggingface_hub import constants

from tests.check.conftest import MakePair, Pair
from tests.check.fake_hub import COMMIT, FakeHub
from vllm_eagle3 import cli
from vllm_eagle3.check.hub import _weight_files


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
    captured = capsys.readouterr()
    assert captured.out[:1] == "{", captured
    return code, json.loads(captured.out)


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


def test_bytes_that_a_tensor_only_claims_are_not_fetched(
    hub: FakeHub, make_pair: MakePair, capsys
):
    """One number would be fetched, but not one of some twenty megabytes."""
    pair = large_pair(make_pair)
    pair.tensors["zz.padding"] = torch.zeros(6_000_000)
    publish(hub, pair)
    weights = pair.draft_folder / "model.safetensors"
    content = weights.read_bytes()
    shape = b'"shape":[6000000]'
    assert content.count(shape) == 1
    weights.write_bytes(content.replace(shape, b'"shape":[1]'.ljust(len(shape))))
    code, report = check(capsys)
    assert code == 2
    assert report["findings"][0]["message"].startswith("The draft checkpoint cannot be")
    assert hub.served[weights.name] < 400_000


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
    # Of one commit, even if the branch moves on meanwhile.
    assert hub.asked == {("listing", "v1"), ("listing", COMMIT), ("file", COMMIT)}
    assert report["speculative_config"] == {
        "method": "eagle3",
        "model": "someone/draft",
        "revision": "v1",
        "num_speculative_tokens": 3,
    }


def test_weights_are_those_that_vllm_would_load():
    files = ["config.json", "a/model.safetensors", "x.bin", "y.bin", "z.pt"]
    assert _weight_files(files) == ["x.bin", "y.bin"]
    assert _weight_files([*files, "w.safetensors"]) == ["w.safetensors"]
    assert _weight_files(["config.json"]) == []


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


def test_what_was_downloaded_before_is_enough(
    hub: FakeHub, make_pair: MakePair, monkeypatch, capsys
):
    """By a server, say; a check leaves configs only."""
    publish(hub, make_pair())
    for name in hub.repositories:
        huggingface_hub.snapshot_download(name, revision="v1")
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    code, report = check(capsys, "--revision", "v1", "--target-revision", "v1")
    assert code == 0
    assert report["draft"]["where"] == f"Hub cache, {COMMIT}"
    assert report["target"]["where"] == f"Hub, {COMMIT}"
    assert report["speculative_config"]["revision"] == "v1"


def test_configs_that_a_check_left_are_not_enough(
    hub: FakeHub, make_pair: MakePair, monkeypatch, capsys
):
    publish(hub, make_pair())
    assert check(capsys)[0] == 0
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    assert "someone/draft is no folder here, and the Hub" in refusal(capsys, *PAIR)


def test_no_vllm_code_is_needed_for_a_name_that_cannot_be(capsys):
    line = refusal(capsys, "a/b/c", "--target", "someone/target")
    assert line == "DRAFT a/b/c is neither a folder here nor a Hub id (owner/name)."

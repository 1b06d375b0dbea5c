# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""Configs and files made to confuse the check: a verdict or one line, no traceback."""

import io
import json
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.check.conftest import MakePair, Pair, check_folders, errors
from tests.check.test_agreement import serve
from vllm_eagle3 import cli
from vllm_eagle3.check import render, source
from vllm_eagle3.check.exporters import UNKNOWN, recognise

STEERING = "w\x1b[2J\x1b]0;title\x07\u202eword\nSERVES: a server would"


def arguments(pair: Pair) -> list[str]:
    return ["check", str(pair.draft_folder), "--target", str(pair.target_folder)]


@pytest.mark.parametrize("is_terminal", [True, False], ids=["terminal", "pipe"])
def test_a_name_cannot_steer_the_terminal(make_pair: MakePair, is_terminal: bool):
    """Nor look like a verdict."""
    pair = make_pair()
    pair.tensors[STEERING] = torch.ones(3)
    report = pair.check()
    assert any(STEERING in message for message in errors(report))
    output = io.StringIO()
    output.isatty = lambda: is_terminal  # type: ignore[method-assign]
    render.show(report, output)
    text = output.getvalue()
    for steering in ("\x1b[2J", "\x1b]", "\x07", "\u202e"):
        assert steering not in text
    assert r"\x1b]0;title\x07\u202eword" in text.replace("\n", "")
    assert not any(line.startswith("SERVES") for line in text.splitlines())


def test_half_a_character_can_be_printed(make_pair: MakePair):
    pair = make_pair(architectures=["Half\ud800"])
    output = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
    render.show(pair.check(), output)


@pytest.mark.parametrize(
    "content",
    ["[" * 10**5, '{"a":' * 10**5, '{"vocab_size": ' + "9" * 5000 + "}", "\ufeff{}"],
    ids=["lists", "objects", "digits", "byte order mark"],
)
def test_a_config_that_no_parser_takes(make_pair: MakePair, capsys, content: str):
    pair = make_pair().write()
    (pair.draft_folder / "config.json").write_text(content)
    assert cli.main(arguments(pair)) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert f"{pair.draft_folder}: config.json is no valid JSON" in line


@pytest.mark.parametrize(
    "config",
    [
        {"architectures": 7},
        {"architectures": "LlamaEagle3DraftModel"},
        {"architectures": [None]},
        {"eagle_config": "next_layer_regular"},
        {"eagle_config": 7},
    ],
)
def test_exporters_do_not_stumble_over_other_types(config: dict[str, Any]):
    assert recognise(config, (), ()) == UNKNOWN


@pytest.mark.parametrize("value", ["text", [], None])
@pytest.mark.parametrize(
    "key", ["transformer_layer_config", "speculators_config", "architectures"]
)
def test_a_draft_config_of_other_types_gets_a_verdict(
    make_pair: MakePair, key: str, value: Any
):
    pair = make_pair(**{"speculators_model_type": "eagle3", key: value})
    report = pair.check()
    refusal, _ = serve(pair.draft_folder)
    assert errors(report)[:1] == ([] if refusal is None else [refusal])


def test_a_quantisation_config_of_other_types_gets_a_verdict(make_pair: MakePair):
    """It is not this machine that lacks something."""
    groups = {"quant_method": "compressed-tensors", "config_groups": "x"}
    pair = make_pair(quantization_config=groups)
    assert pair.check().verdict == "refused"


@pytest.mark.parametrize("value", ["text", 7, []])
def test_a_target_config_of_other_types_gets_a_verdict(make_pair: MakePair, value: Any):
    pair = make_pair(architectures=["NoSuchModel"])
    pair.target["text_config"] = value
    assert pair.check().verdict == "refused"


def test_a_user_that_there_is_not():
    with pytest.raises(ValueError, match="is neither a folder here nor a Hub id"):
        source.refuse_at_sight("DRAFT", "~no-such-user/draft", None)


def test_what_else_lies_in_the_targets_folder(make_pair: MakePair):
    """A link that leads nowhere, and a folder, under the names of configs."""
    pair = make_pair().write()
    (pair.target_folder / "gone.json").symlink_to(pair.root / "nowhere")
    (pair.target_folder / "folder.json").mkdir()
    report = check_folders(pair.draft_folder, pair.target_folder)
    assert report.verdict == "serves"


def test_folders_with_spaces(make_pair: MakePair, tmp_path: Path):
    pair = make_pair("llama", 256).write()
    draft = pair.draft_folder.rename(tmp_path / "my own draft")
    target = pair.target_folder.rename(tmp_path / "a target's folder")
    report = check_folders(draft, target)
    assert report.verdict == "serves"
    assert json.loads(json.dumps(report.speculative_config))["model"] == str(draft)

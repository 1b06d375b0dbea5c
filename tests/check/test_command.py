# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""The command: exit codes, both ways of printing, JSON, and mistakes of users."""

import io
import json
import os
import subprocess
from pathlib import Path

import pytest

from tests.check.conftest import MakePair
from tests.support.commands import COMMAND, without_a_reader
from vllm_eagle3 import cli, overlay, subtree
from vllm_eagle3.check import render

KEYS = {
    "schema_version",
    "verdict",
    "draft",
    "target",
    "seconds",
    "findings",
    "speculative_config",
    "exporter",
    "model",
    "vocabulary",
    "costs",
    "quantisation",
    "sharing",
}


def test_the_installed_command_reads_a_draft_and_says_nothing_else(make_pair: MakePair):
    """Whatever vLLM logs goes nowhere, but the draft's warnings are told."""
    pair = make_pair("llama", 256, eagle_aux_hidden_state_layer_ids=...)
    done = subprocess.run(
        [COMMAND, *pair.arguments("--strict")],
        env=os.environ | {"VLLM_LOGGING_LEVEL": "DEBUG"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1, done.stderr
    assert done.stderr == ""
    assert "\x1b" not in done.stdout
    lines = done.stdout.splitlines()
    assert lines[0].startswith("draft ")
    assert "vocabulary     reduced vocabulary, 256 of 1024, remapped by d2t" in lines
    (warning,) = [line for line in lines if line.startswith("warning (loading): ")]
    assert "eagle_aux_hidden_state_layer_ids is not set" in warning
    assert lines[-3].startswith("SERVES, WITH WARNINGS: ")
    assert lines[-1].startswith("imports ")


@pytest.mark.parametrize(
    "change, flags, code",
    [
        ({}, [], 0),
        ({}, ["--strict"], 0),
        ({"eagle_aux_hidden_state_layer_ids": ...}, [], 0),
        ({"eagle_aux_hidden_state_layer_ids": ...}, ["--strict"], 1),
        ({"draft_vocab_size": 300}, [], 2),
        ({"draft_vocab_size": 300}, ["--strict"], 2),
    ],
)
def test_exit_codes(make_pair: MakePair, capsys, change, flags, code):
    pair = make_pair("llama", 256, **change)
    assert cli.main(pair.arguments(*flags)) == code
    verdict = capsys.readouterr().out
    assert ("REFUSED" in verdict) == (code == 2)
    # What cannot be served has no config to serve it with.
    assert ("--speculative-config" in verdict) == (code != 2)


def test_a_reader_that_has_seen_enough_is_no_verdict(make_pair: MakePair):
    """`check` prints through rich, which has an exit code of its own for it."""
    pair = make_pair("llama", 256)
    assert without_a_reader(*pair.arguments()) == (141, "")


def test_the_length_is_that_of_the_server(make_pair: MakePair, capsys):
    pair = make_pair("llama", 256, max_position_embeddings=512)
    assert cli.main(pair.arguments("--strict")) == 1
    assert "served with 2048 tokens" in capsys.readouterr().out
    assert cli.main(pair.arguments("--strict", "--max-model-len", "512")) == 0


def test_json_has_everything_that_text_has(make_pair: MakePair, capsys):
    pair = make_pair("llama", 256, eagle_aux_hidden_state_layer_ids=...)
    assert cli.main(pair.arguments("--json")) == 0
    report = json.loads(capsys.readouterr().out)
    assert report.keys() == KEYS
    assert report["schema_version"] == 1
    assert report["verdict"] == "serves with warnings"
    assert report["vocabulary"]["case"] == "reduced"
    assert report["model"]["auxiliary"]["ids"] == [2, 4, 5]
    (finding,) = report["findings"]
    assert finding.keys() == {"severity", "stage", "message"}
    assert finding["severity"] == "warning"
    assert report["seconds"].keys() == {"imports", "check"}


def test_json_of_a_refused_draft(make_pair: MakePair, capsys):
    pair = make_pair("llama", 256, architectures=["NoSuchModel"])
    assert cli.main(pair.arguments("--json")) == 2
    report = json.loads(capsys.readouterr().out)
    assert report["verdict"] == "refused"
    assert report["model"] is None


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_colours_in_a_terminal_only(make_pair: MakePair, monkeypatch):
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.delenv("NO_COLOR", raising=False)
    report = make_pair("llama", 256, draft_vocab_size=300).check()
    terminal, pipe = Terminal(), io.StringIO()
    render.show(report, terminal)
    render.show(report, pipe)
    assert "\x1b[1;31mREFUSED" in terminal.getvalue()
    assert "\x1b" not in pipe.getvalue()
    (error, *_) = [line for line in pipe.getvalue().splitlines() if "error (" in line]
    assert error == f"error (loading): {report.findings[0].message}"


def test_square_brackets_are_no_markup(make_pair: MakePair):
    report = make_pair("llama", 256, draft_vocab_size=300).check()
    pipe = io.StringIO()
    render.show(report, pipe)
    assert "must have shape [300]" in pipe.getvalue()


def test_help_has_examples_and_exit_codes(capsys):
    with pytest.raises(SystemExit) as end:
        cli.main(["check", "--help"])
    assert end.value.code == 0
    output = capsys.readouterr().out
    assert "vllm-eagle3 check ./my-draft --target" in output
    assert "exit codes:" in output


@pytest.mark.parametrize("tokens", ["0", "-1", "three"])
def test_tokens_must_be_a_positive_number(capsys, tokens):
    with pytest.raises(SystemExit) as end:
        cli.main(["check", "draft", "--target", "target", "--tokens", tokens])
    assert end.value.code == 2
    assert "--tokens" in capsys.readouterr().err


def mistake(capsys, *arguments: str) -> str:
    """Runs a check that cannot be made; returns its one line on standard error."""
    assert cli.main(["check", *arguments]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    (line,) = captured.err.splitlines()
    return line.removeprefix("vllm-eagle3: error: ")


def test_a_missing_folder(capsys, make_pair: MakePair):
    target = str(make_pair().write().target_folder)
    assert mistake(capsys, "./no/such/draft", "--target", target) == (
        "DRAFT ./no/such/draft is neither a folder here nor a Hub id (owner/name)."
    )


def test_a_missing_target(capsys, make_pair: MakePair):
    draft = str(make_pair().write().draft_folder)
    assert mistake(capsys, draft, "--target", "/no/such") == (
        "--target /no/such is neither a folder here nor a Hub id (owner/name)."
    )


def test_a_file_in_place_of_its_folder(capsys, make_pair: MakePair):
    pair = make_pair().write()
    file = str(pair.draft_folder / "model.safetensors")
    line = mistake(capsys, file, "--target", str(pair.target_folder))
    assert line == (f"DRAFT {file} is a file. Give the folder that holds config.json.")


def test_a_folder_that_is_no_model(capsys, make_pair: MakePair, tmp_path: Path):
    target = str(make_pair().write().target_folder)
    line = mistake(capsys, str(tmp_path), "--target", target)
    assert line.startswith(f"{tmp_path} holds no config.json")


def test_a_draft_without_weights(capsys, make_pair: MakePair):
    pair = make_pair().write()
    (pair.draft_folder / "model.safetensors").unlink()
    line = mistake(capsys, *pair_arguments(pair))
    assert line.startswith(f"{pair.draft_folder} holds no weights")


@pytest.mark.parametrize("content", ["{", "[1, 2]", "\xff"])
def test_a_config_that_is_no_json_object(capsys, make_pair: MakePair, content: str):
    pair = make_pair().write()
    (pair.draft_folder / "config.json").write_bytes(content.encode("latin-1"))
    line = mistake(capsys, *pair_arguments(pair))
    assert line.startswith(f"{pair.draft_folder}: config.json ")


def test_a_revision_of_a_folder(capsys, make_pair: MakePair):
    pair = make_pair().write()
    line = mistake(capsys, *pair_arguments(pair), "--revision", "main")
    assert "a folder has no revisions" in line


def test_an_inactive_overlay(capsys, make_pair: MakePair, monkeypatch):
    inactive = overlay.Outcome(False, "switched off by VLLM_EAGLE3_DISABLE")
    monkeypatch.setattr(overlay, "_outcome", inactive)
    monkeypatch.setattr(overlay, "activate", lambda: None)
    line = mistake(capsys, *pair_arguments(make_pair().write()))
    assert line.startswith("vllm-eagle3 is inactive here")
    assert "switched off by VLLM_EAGLE3_DISABLE" in line


def test_a_draft_that_another_class_serves(capsys, make_pair: MakePair, monkeypatch):
    monkeypatch.setattr(subtree, "REPLACED_MODULES", ())
    line = mistake(capsys, *pair_arguments(make_pair().write()))
    assert line.startswith("A server would use vLLM's own Eagle3LlamaForCausalLM")


def test_a_machine_without_the_device_of_its_vllm(make_pair: MakePair, monkeypatch):
    """A CUDA build on a machine without a GPU: vLLM finds no platform."""
    from vllm import platforms
    from vllm.platforms.interface import UnspecifiedPlatform

    monkeypatch.setattr(
        platforms, "_current_platform", UnspecifiedPlatform(), raising=True
    )
    pair = make_pair().write()
    assert pair.check().verdict == "serves"
    assert platforms.current_platform.is_cpu()
    monkeypatch.delattr(platforms, "current_platform")


def pair_arguments(pair) -> tuple[str, str, str]:
    return str(pair.draft_folder), "--target", str(pair.target_folder)

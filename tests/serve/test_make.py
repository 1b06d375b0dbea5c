# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""What make passes on, seen without running it."""

import subprocess
from pathlib import Path

import pytest

from tests.support.environment import AT_START
from tests.support.example import REPOSITORY, Example


def make(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["make", "--no-print-directory", *arguments],
        cwd=REPOSITORY,
        env=AT_START,
        capture_output=True,
        text=True,
    )


def test_every_vocabulary_is_built_and_served(example: Example) -> None:
    for vocabulary in example("build_draft").VOCABULARIES:
        commands = make("--dry-run", "serve", f"VOCAB={vocabulary}")

        assert commands.returncode == 0, commands.stderr
        assert f"build_draft.py --vocab {vocabulary}\n" in commands.stdout
        assert f"--vocab {vocabulary} -- " in commands.stdout


@pytest.mark.parametrize("vocabulary", ["half", "full reduced"])
def test_an_unknown_vocabulary_is_one_sentence_before_any_set_up(
    vocabulary: str,
) -> None:
    refused = make("serve", f"VOCAB={vocabulary}", "VENV=/no/such/folder")

    assert refused.returncode != 0
    assert refused.stdout == ""
    (line,) = refused.stderr.splitlines()
    assert f"VOCAB={vocabulary} is no vocabulary of the example's draft" in line
    assert "full default reduced full-d2t" in line


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"TARGET": "/none", "DRAFT": "owner/name"}, "TARGET=/none is no folder with"),
        ({"TARGET": "owner/name", "DRAFT": "./docs"}, "DRAFT=./docs is no folder with"),
        ({"DRAFT": "owner/name"}, "name both, the target and its draft, or neither"),
        ({"TARGET": "owner/name"}, "name both, the target and its draft, or neither"),
    ],
)
def test_a_pair_that_cannot_be_is_one_sentence_before_any_set_up(
    given: dict[str, str], reason: str
) -> None:
    arguments = [f"{name}={value}" for name, value in given.items()]
    refused = make("serve", *arguments, "VENV=/no/such/folder")

    assert refused.returncode != 0
    assert refused.stdout == ""
    (line,) = refused.stderr.splitlines()
    assert reason in line


def test_an_own_pair_is_handed_on(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    commands = make("--dry-run", "serve", "TARGET=owner/name", f"DRAFT={tmp_path}")

    assert commands.returncode == 0, commands.stderr
    assert f"--target 'owner/name' --draft '{tmp_path}'" in commands.stdout


def test_a_chat_without_an_environment_says_what_to_start() -> None:
    refused = make("chat", "VENV=/no/such/folder")

    assert refused.returncode != 0
    assert "start a server with `make serve`" in refused.stderr

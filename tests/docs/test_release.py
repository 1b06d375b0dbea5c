# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""Notes of a release, and what the workflows take from elsewhere."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.docs import shown

ROOT = shown.ROOT
SCRIPT = ROOT / "tools" / "docs" / "release_notes.py"
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
CHANGELOG = """\
# Changelog

## [Unreleased]

- Later.

## [0.2.0] - 2027-01-31

### Added

- This.

## [0.1.0] - 2026-12-24

- First.
"""


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """One that is ready for 0.2.0, with the script in it."""
    (tmp_path / "CHANGELOG.md").write_text(CHANGELOG)
    (tmp_path / "CITATION.cff").write_text("cff-version: 1.2.0\nversion: 0.2.0\n")
    (tmp_path / "pyproject.toml").write_text('[project]\nversion = "0.2.0"\n')
    script = tmp_path / "tools" / "docs" / SCRIPT.name
    script.parent.mkdir(parents=True)
    script.write_bytes(SCRIPT.read_bytes())
    return tmp_path


def notes(repository: Path, tag: str) -> subprocess.CompletedProcess[str]:
    script = repository / "tools" / "docs" / SCRIPT.name
    return subprocess.run(
        [sys.executable, str(script), tag], capture_output=True, text=True
    )


def test_notes_are_the_section_of_the_version(repository: Path):
    done = notes(repository, "v0.2.0")
    assert (done.returncode, done.stdout) == (0, "### Added\n\n- This.\n")


@pytest.mark.parametrize(
    ("file", "old", "new", "sentence"),
    [
        ("pyproject.toml", "0.2.0", "0.3.0", "pyproject.toml has version 0.3.0"),
        ("CITATION.cff", "n: 0.2.0", "n: 0.1.9", "CITATION.cff has version 0.1.9"),
        ("CHANGELOG.md", "[0.2.0] - 2027-01-31", "[0.2.0]", "no section `## [0.2.0]"),
        ("CHANGELOG.md", "### Added\n\n- This.\n", "", "says nothing about 0.2.0"),
    ],
)
def test_a_place_that_is_not_ready_is_named(
    repository: Path, file: str, old: str, new: str, sentence: str
):
    path = repository / file
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new))
    done = notes(repository, "v0.2.0")
    assert (done.returncode, done.stdout) == (2, "")
    assert sentence in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_a_tag_of_another_form_is_refused(repository: Path):
    assert notes(repository, "0.2.0").returncode == 2


def test_the_version_is_the_same_in_all_places_of_this_repository():
    version = re.search(
        r'^version = "(.+)"$', (ROOT / "pyproject.toml").read_text(), re.M
    )
    assert f"\nversion: {version[1]}\n" in (ROOT / "CITATION.cff").read_text("utf-8")


def actions(text: str) -> list[tuple[str, str]]:
    """Actions that a workflow takes from elsewhere: name, and what follows the @."""
    used = re.findall(r"^\s*(?:- )?uses: (\S+.*)$", text, re.MULTILINE)
    return [tuple(use.split("@", 1)) for use in used if not use.startswith("./")]


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_actions_are_pinned_by_commit(path: Path):
    for action, pin in actions(path.read_text("utf-8")):
        assert re.fullmatch(r"[0-9a-f]{40} # v[\d.]+", pin), action


def test_an_action_is_the_same_commit_everywhere():
    pins: dict[str, set[str]] = {}
    for path in WORKFLOWS:
        for action, pin in actions(path.read_text("utf-8")):
            pins.setdefault(action, set()).add(pin)
    assert {action: found for action, found in pins.items() if len(found) > 1} == {}


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_a_workflow_may_no_more_than_it_says(path: Path):
    workflow = yaml.safe_load(path.read_text("utf-8"))
    assert workflow["permissions"] in ({}, {"contents": "read"})


def test_the_report_about_a_draft_comes_with_the_checks_output():
    form = yaml.safe_load(
        (ROOT / ".github" / "ISSUE_TEMPLATE" / "draft.yml").read_text("utf-8")
    )
    fields = {field.get("id"): field for field in form["body"]}
    assert (
        "vllm-eagle3 check DRAFT --target TARGET --json"
        in (fields["check"]["attributes"]["description"])
    )
    assert fields["check"]["validations"]["required"] is True

# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""The tools that run the tests with another vLLM, and that renew the drift table."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]


def run(tool: str, *arguments: str, trees: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, f"tools/{tool}.py", *arguments],
        cwd=REPOSITORY,
        env=os.environ | {"VLLM_TREES": str(trees)},
        capture_output=True,
        text=True,
    )


@pytest.fixture
def trees(tmp_path: Path) -> Path:
    """A folder for releases that no index has."""
    return tmp_path


def test_a_release_that_has_moved_nothing_goes_on_to_the_tests(trees):
    """The release for GPUs loads and runs drafts of all families, on a CPU."""
    file = "tests/model_executor/models/test_eagle3_cases.py"
    done = run(
        "test_vllm", "0.33.0", "--", file, "-k", "a1_ or a4_ or a14_", trees=trees
    )
    assert done.returncode == 0, done.stdout[-4000:]
    assert done.stdout.startswith("vLLM 0.33.0: none of the ")
    assert re.search(r"\b1[0-9] passed", done.stdout)


def test_a_release_that_has_moved_something_does_not(trees):
    moved = trees / "9.8" / "vllm"
    models = moved / "model_executor" / "models"
    models.mkdir(parents=True)
    (moved / "__init__.py").touch()
    (models / "registry.py").touch()
    done = run("test_vllm", "9.8", "--", "--version", trees=trees)
    assert done.returncode == 1
    assert "Files to look at: " in done.stdout
    assert "pytest 9" not in done.stdout + done.stderr


def test_a_word_that_is_no_version_is_a_users_mistake(trees):
    done = run("test_vllm", "newest", trees=trees)
    assert done.returncode == 2
    assert done.stderr.startswith("test_vllm: 'newest' is no version")
    assert done.stderr.count("\n") == 1

# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""The tools that run the tests with another vLLM, and that renew the drift table."""

import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tools import vllm_tree

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


def release(folder: Path, version: str, platform: str) -> None:
    """Puts a wheel there that has what a tree of vLLM is told by."""
    info = f"vllm-{version}.dist-info"
    metadata = f"Metadata-Version: 2.1\nName: vllm\nVersion: {version}\n"
    name = f"vllm-{version}-cp38-abi3-{platform}.whl"
    with zipfile.ZipFile(folder / name, "w") as wheel:
        wheel.writestr("vllm/__init__.py", "")
        wheel.writestr(f"{info}/METADATA", metadata)
        wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\n")
        wheel.writestr(f"{info}/RECORD", "")


def test_the_newest_release_is_found_whatever_linux_it_is_for(tmp_path, monkeypatch):
    """pip would take an older one, and nobody would see that something has moved."""
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    release(tmp_path, "98.0", "manylinux_2_28_x86_64")
    release(tmp_path, "98.1", "manylinux2014_x86_64")
    release(tmp_path, "98.2", "manylinux_2_41_x86_64")
    assert vllm_tree.fetch("latest", tmp_path / "cache").name == "vllm-98.2"
    assert vllm_tree.fetch("98.1", tmp_path / "cache").name == "vllm-98.1"

# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""`make build-from-source`: the patches go in, all else is the checkout's own build.

The checkout is vLLM's files with a build of two lines, which writes down what it sees.
"""

import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from .trees import SOMEBODY, Tree, git

REPOSITORY = Path(__file__).resolve().parents[2]
PROJECT = """\
[build-system]
requires = ["setuptools"]
build-backend = "setuptools.build_meta"
"""
SETUP = """\
import json, os, setuptools
seen = {name: value for name, value in os.environ.items() if name.startswith("VLLM_")}
open("vllm/seen.json", "w").write(json.dumps(seen))
setuptools.setup(
    name="vllm", version="0.0.1", packages=["vllm", "vllm.model_executor.models"],
    package_data={"vllm": ["seen.json"]},
)
"""
DRAFTS = "vllm/model_executor/models/eagle3_head.py"


@pytest.fixture
def checkout(tmp_path):
    tree = Tree.light(tmp_path / "checkout")
    (tree.root / "pyproject.toml").write_text(PROJECT)
    (tree.root / "setup.py").write_text(SETUP)
    tree.commit()
    return tree.root


def make(source: object, *arguments: str, **environment: str):
    command = ["make", "build-from-source", f"VLLM_SOURCE={source}"]
    command += [f"BUILD_PYTHON={sys.executable}", f"PYTHON={sys.executable}"]
    return subprocess.run(
        [*command, *arguments],
        cwd=REPOSITORY,
        env=os.environ | SOMEBODY | environment,
        capture_output=True,
        text=True,
    )


def subjects(checkout: Path) -> list[str]:
    return git(checkout, "log", "--format=%s").splitlines()


def test_the_checkout_is_patched_and_builds_itself_with_its_own_variables(
    checkout, tmp_path
):
    tool = [sys.executable, REPOSITORY / "tools" / "build_from_source.py", checkout]
    tool += ["--python", sys.executable, "--wheels", tmp_path / "wheels"]
    variables = {
        "VLLM_TARGET_DEVICE": "rocm",
        "VLLM_USE_PRECOMPILED": "1",
        "VLLM_PRECOMPILED_WHEEL_LOCATION": str(tmp_path / "vllm-0.33.0.whl"),
        "VLLM_VERSION_OVERRIDE": "0.33.0",
    }
    done = subprocess.run(
        [*tool, "--pip-arguments=--no-build-isolation --no-cache-dir"],
        env=os.environ | SOMEBODY | variables,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert len(subjects(checkout)) == 4
    (wheel,) = (tmp_path / "wheels").glob("vllm-0.0.1-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        assert DRAFTS in archive.namelist()
        seen = json.loads(archive.read("vllm/seen.json"))
    assert seen.items() >= variables.items()
    assert not [name for name in seen if "EAGLE3" in name]


def test_a_dry_run_says_what_would_run_and_changes_nothing(checkout, tmp_path):
    tool = REPOSITORY / "tools" / "build_from_source.py"
    done = subprocess.run(
        [sys.executable, tool, checkout, "--dry-run", "--pip-arguments=--verbose"],
        env=os.environ | SOMEBODY,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    apply, build = done.stdout.splitlines()
    assert apply.startswith(f"$ git -C {checkout} am --keep-non-patch ")
    assert build.startswith("$ python3 -m pip wheel --no-deps --wheel-dir ")
    assert build.endswith(f"--verbose {checkout}")
    assert subjects(checkout) == ["base"]


def test_a_patched_checkout_is_built_as_it_is(checkout):
    shutil.copytree(
        REPOSITORY / "vllm", checkout / "vllm", dirs_exist_ok=True, symlinks=True
    )
    done = make(checkout, "BUILD_ARGS=--no-such-option")
    assert done.returncode != 0
    assert f"{checkout} has the fork's patches already." in done.stdout
    assert "no such option" in done.stderr
    assert done.stderr.count("build-from-source: ") == 1
    assert subjects(checkout) == ["base"]


def test_a_checkout_that_has_moved_is_not_built(checkout):
    with (checkout / DRAFTS).with_name("llama_eagle3.py").open("a") as file:
        file.write("MOVED = True\n")
    done = make(checkout)
    assert done.returncode != 0
    assert "llama_eagle3.py: the file has changed" in done.stderr
    assert "pip wheel" not in done.stdout
    assert subjects(checkout) == ["base"]


def test_a_checkout_in_the_middle_of_other_work_is_left_as_it_is(checkout):
    (checkout / "setup.py").write_text("in_work = True\n")
    git(checkout, "add", "setup.py")
    done = make(checkout)
    assert done.returncode != 0
    assert f"build-from-source: `git -C {checkout} am ...` failed" in done.stderr
    assert git(checkout, "status", "--short") == "M  setup.py\n"
    assert not (checkout / ".git" / "rebase-apply").exists()


def test_without_a_checkout_it_says_how():
    done = make("")
    assert done.returncode != 0
    assert "make build-from-source VLLM_SOURCE=PATH" in done.stderr


def test_files_without_git_are_refused(checkout):
    shutil.rmtree(checkout / ".git")
    done = make(checkout)
    assert done.returncode != 0
    assert f"{checkout} is no git checkout" in done.stderr

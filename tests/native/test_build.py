# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""Building a wheel: with the operators, without a compiler, and as the user says."""

import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
SOURCES = ("csrc", "vllm", "vllm_eagle3", "CMakeLists.txt", "setup.py")
TEXTS = ("pyproject.toml", "README.md", "LICENSE", "NOTICE")
OPERATORS = "vllm_eagle3/_native_cpu.so"
Build = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A copy, so that the repository stays clean."""
    ignore = shutil.ignore_patterns("__pycache__", "*.egg-info", "*.so")
    for name in (*SOURCES, *TEXTS):
        path, copy = REPOSITORY / name, tmp_path / name
        if path.is_dir():
            shutil.copytree(path, copy, ignore=ignore)
        else:
            shutil.copy(path, copy)
    return tmp_path


def build(source: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    inherited = {
        name: value
        for name, value in os.environ.items()
        if name not in ("VLLM_TARGET_DEVICE", "CUDA_HOME")
    }
    return subprocess.run(
        [sys.executable, "setup.py", "bdist_wheel"],
        cwd=source,
        env=inherited | environment,
        capture_output=True,
        text=True,
    )


def wheel(source: Path) -> tuple[str, set[str]]:
    """The name of the wheel that was built, and what is in it."""
    (path,) = (source / "dist").glob("*.whl")
    return path.name, set(zipfile.ZipFile(path).namelist())


def test_a_wheel_carries_the_operators_for_any_python_and_machine(source):
    """Without a word from the user: what this torch can use."""
    done = build(source)
    assert done.returncode == 0, done.stderr
    name, files = wheel(source)
    assert OPERATORS in files
    assert "-py3-none-linux_" in name
    library = zipfile.ZipFile(source / "dist" / name).read(OPERATORS)
    for folder_of_this_machine in (source, Path(sys.prefix)):
        assert str(folder_of_this_machine).encode() not in library


def without_compiler(folder: Path) -> str:
    """A PATH on which Python is all there is."""
    folder.mkdir()
    (folder / "python").symlink_to(sys.executable)
    return str(folder)


def test_without_a_compiler_a_wheel_of_python_files_is_built(source):
    done = build(source, PATH=without_compiler(source / "bin"))
    assert done.returncode == 0, done.stderr
    name, files = wheel(source)
    assert name.endswith("-py3-none-any.whl")
    assert OPERATORS not in files
    said, file, token, wide = run_from(source / "dist" / name, source / "installed")
    assert said == "PyTorch (not built at installation)"
    assert Path(file).is_relative_to(source / "installed")
    assert token == "[2]" and wide == "[[-inf, 5.0, 7.0, -inf]]"


USE = """
from vllm.plugins import load_general_plugins
from vllm_eagle3 import native
load_general_plugins()
import torch
from vllm.model_executor.models import draft_vocabulary_ops as operators
logits, ids = torch.tensor([[5.0, 7.0]]), torch.tensor([1, 2])
print(native.load(), operators.__file__, sep="\\n")
print(operators.draft_argmax_to_target(logits, ids).tolist())
inverse = operators.inverse_ids(ids, 4)
print(operators.widen_draft_logits(logits, ids, inverse).tolist())
"""


def run_from(path: Path, folder: Path) -> list[str]:
    """Puts a wheel's files in place, as pip does, and computes with them."""
    zipfile.ZipFile(path).extractall(folder)
    done = subprocess.run(
        [sys.executable, "-c", USE],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(folder), "VLLM_LOGGING_LEVEL": "ERROR"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()[-4:]


def test_a_build_that_fails_leaves_python_files_alone(source):
    (source / "csrc" / "cpu" / "loops.cpp").write_text("#error broken\n")
    done = build(source)
    assert done.returncode == 0, done.stderr
    assert "the native operators were not built, PyTorch serves" in (
        done.stdout + done.stderr
    )
    _, files = wheel(source)
    assert OPERATORS not in files


def test_what_the_user_asks_for_by_name_must_build(source):
    (source / "csrc" / "cpu" / "loops.cpp").write_text("#error broken\n")
    assert build(source, VLLM_TARGET_DEVICE="cpu").returncode != 0


def test_the_user_may_want_none(source):
    done = build(source, VLLM_TARGET_DEVICE="empty")
    assert done.returncode == 0, done.stderr
    name, _ = wheel(source)
    assert name.endswith("-py3-none-any.whl")


def test_another_device_is_refused(source):
    done = build(source, VLLM_TARGET_DEVICE="rocm")
    assert done.returncode != 0
    assert "VLLM_TARGET_DEVICE is 'rocm'" in done.stderr
    assert "empty, cpu, cuda" in done.stderr

# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""Wheels of this repository, and environments that have nothing else of it."""

import os
import shutil
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
_SOURCES = ("vllm", "vllm_eagle3", "csrc")
_FILES = ("*.toml", "*.md", "*.in", "CMakeLists.txt", "setup.py", "LICENSE", "NOTICE")


def copy_sources(folder: Path, *further: str) -> None:
    """Copies what distributions are made from, so that the repository stays clean.

    Args:
        folder: Receives the copy; it may exist.
        further: Folders of the repository that are wanted as well.
    """
    ignore = shutil.ignore_patterns("__pycache__", "*.egg-info", "*.so")
    for name in (*_SOURCES, *further):
        shutil.copytree(REPOSITORY / name, folder / name, ignore=ignore)
    for pattern in _FILES:
        for path in REPOSITORY.glob(pattern):
            shutil.copy(path, folder)


def build(source: Path, device: str = "empty") -> Path:
    """Builds the wheel of a folder of sources, below it.

    Args:
        source: The folder.
        device: What ``VLLM_TARGET_DEVICE`` says; without native operators by default.
    """
    command = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-cache-dir"]
    command += ["--no-build-isolation", "--wheel-dir", str(source / "dist")]
    done = subprocess.run(
        [*command, str(source)],
        env=os.environ | {"VLLM_TARGET_DEVICE": device},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    (path,) = (source / "dist").glob("*.whl")
    return path


def environment(folder: Path, wheel: Path) -> Path:
    """Makes an environment of a wheel and of vLLM as the tests have it.

    Returns:
        Its interpreter.
    """
    venv.create(folder, with_pip=False, symlinks=True)
    python = folder / "bin" / "python"
    install(wheel, python)
    # Only now, for pip would find the tests' own fork. Python does not: it does not
    # follow the .pth files of a folder that it knows by a .pth file.
    packages = Path(sysconfig.get_path("purelib", vars={"base": str(folder)}))
    (packages / "vllm_of_the_tests.pth").write_text(sysconfig.get_path("purelib"))
    return python


def install(wheel: Path, python: Path) -> None:
    """Installs a wheel as pip does, alone and from nowhere else."""
    pip = [sys.executable, "-m", "pip", "--python", str(python), "install"]
    done = subprocess.run(
        [*pip, "--no-deps", "--no-index", str(wheel)], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr

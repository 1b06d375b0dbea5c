# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""A wheel of this repository, without native operators."""

import shutil
import subprocess
import sys
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
_SOURCES = (
    "vllm",
    "vllm_eagle3",
    "setup.py",
    "pyproject.toml",
    "README.md",
    "LICENSE",
    "NOTICE",
)


def copy_sources(folder: Path) -> None:
    """Copies what a wheel is made from, so that the repository stays clean."""
    ignore = shutil.ignore_patterns("__pycache__", "*.egg-info", "*.so")
    for name in _SOURCES:
        if (REPOSITORY / name).is_dir():
            shutil.copytree(REPOSITORY / name, folder / name, ignore=ignore)
        else:
            shutil.copy(REPOSITORY / name, folder / name)


def build(source: Path) -> Path:
    """Builds the wheel of a folder of sources, below it."""
    command = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-cache-dir"]
    command += ["--no-build-isolation", "--wheel-dir", str(source / "dist")]
    done = subprocess.run([*command, str(source)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    (path,) = (source / "dist").glob("*.whl")
    return path

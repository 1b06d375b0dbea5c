# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""The command as people run it, and trees to run it on."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from .trees import SOMEBODY, Tree

Command = Callable[..., subprocess.CompletedProcess[str]]


def run_export(*arguments: object, **environment: str):
    command = [sys.executable, "-m", "vllm_eagle3.cli", "export-patch"]
    return subprocess.run(
        [*command, *map(str, arguments)],
        env=os.environ | SOMEBODY | environment,
        capture_output=True,
        text=True,
    )


@pytest.fixture
def export() -> Command:
    """`export(*arguments, **environment)` runs `vllm-eagle3 export-patch`."""
    return run_export


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    """A tree whose model files a test may change."""
    return Tree.light(tmp_path / "tree")


@pytest.fixture
def refusal(tree: Tree, tmp_path: Path) -> Callable[[], str]:
    """The sentence with which `tree` is refused; nothing may have been written."""

    def refused() -> str:
        output = tmp_path / "refused"
        done = run_export("--vllm", tree.root, "--output", output)
        assert (done.returncode, done.stdout) == (2, "")
        assert not output.exists()
        assert done.stderr.count("\n") == 1, done.stderr
        return done.stderr

    return refused

# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""The series in a whole tree of vLLM, where nothing of this fork is loaded.

Each patch stands alone: what it brings passes on it, before the next is applied. It
takes minutes, so each tree has a test file of its own, which may run beside the other.
"""

import re
from pathlib import Path

from vllm_eagle3.export.sources import TESTS

from .conftest import run_export
from .trees import Tree


def paths(*names: str) -> tuple[str, ...]:
    return tuple(f"{TESTS}/test_{name}.py" for name in names)


RESTORED = paths("draft_id_to_target_id", "eagle3_d2t_checkpoints")
CONTRACT = paths("draft_vocabulary")
EVERYTHING = (TESTS,)


def apply_and_test(version: str, at_the_end: tuple[str, ...], folder: Path) -> None:
    """Applies the patches one by one, and runs the tests of each.

    Args:
        version: Of the tree, as `Tree.copy` takes it.
        at_the_end: Tests that run with the whole series in place.
        folder: Empty; receives the tree and the patches.
    """
    tree = Tree.copy(version, folder / "vllm")
    done = run_export("--vllm", tree.root, "--output", folder / "patches")
    assert done.returncode == 0, done.stderr
    patches = sorted((folder / "patches").iterdir())
    stages = (RESTORED, CONTRACT, at_the_end)
    for patch, tests in zip(patches, stages, strict=True):
        tree.apply([patch])
        done = tree.pytest(*tests)
        assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
        passed = re.search(r"(\d+) passed", done.stdout)
        assert passed and int(passed[1]) > 10
        assert "skipped" not in done.stdout

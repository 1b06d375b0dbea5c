# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""The series in whole trees of vLLM, where nothing of this fork is loaded.

Each patch stands alone: what it brings passes on it, before the next is applied.
"""

import re

import pytest

from vllm_eagle3.export.sources import TESTS

from .conftest import run_export
from .trees import FETCHED, INSTALLED, Tree


def paths(*names: str) -> tuple[str, ...]:
    return tuple(f"{TESTS}/test_{name}.py" for name in names)


RESTORED = paths("draft_id_to_target_id", "eagle3_d2t_checkpoints")
CONTRACT = paths("draft_vocabulary")
# All tests of the series in one tree. In the other, whose models rest on the same by
# the drift table, those that the series is about.
AT_THE_END = {INSTALLED: (TESTS,), FETCHED: RESTORED + CONTRACT}


@pytest.mark.parametrize("version", AT_THE_END)
def test_each_patch_applies_and_its_tests_pass(version, tmp_path):
    tree = Tree.copy(version, tmp_path / "vllm")
    done = run_export("--vllm", tree.root, "--output", tmp_path / "patches")
    assert done.returncode == 0, done.stderr
    patches = sorted((tmp_path / "patches").iterdir())
    stages = (RESTORED, CONTRACT, AT_THE_END[version])
    for patch, tests in zip(patches, stages, strict=True):
        tree.apply([patch])
        done = tree.pytest(*tests)
        assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
        passed = re.search(r"(\d+) passed", done.stdout)
        assert passed and int(passed[1]) > 10
        assert "skipped" not in done.stdout

# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""The series in the tree of the installed vLLM, with all its tests at the end."""

from .stages import EVERYTHING, apply_and_test
from .trees import INSTALLED


def test_each_patch_applies_and_its_tests_pass(tmp_path):
    apply_and_test(INSTALLED, EVERYTHING, tmp_path)

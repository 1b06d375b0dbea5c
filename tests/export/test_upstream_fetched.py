# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""The series in the tree of the other supported vLLM.

Its models rest on the same as those of the installed one, by the drift table; so the
tests at the end are those that the series is about.
"""

from .stages import CONTRACT, RESTORED, apply_and_test
from .trees import FETCHED


def test_each_patch_applies_and_its_tests_pass(tmp_path):
    apply_and_test(FETCHED, RESTORED + CONTRACT, tmp_path)

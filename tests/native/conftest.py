# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""The compiled operators, which these tests need."""

import pytest

from tests.plugins.conftest import clean_vllm as clean_vllm
from vllm_eagle3 import native


@pytest.fixture(scope="session", autouse=True)
def loaded() -> native.Native:
    """They are optional for users, and not here: without them nothing is tested."""
    found = native.load()
    if not found.devices:
        pytest.fail(
            f"the operators run in {found}. Install a C++ compiler and CMake, then "
            "build them: VLLM_TARGET_DEVICE=cpu pip install -e . --no-deps "
            "--no-build-isolation"
        )
    return found

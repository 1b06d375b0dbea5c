# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""The compiled operators, which these tests need, in every place where they can run."""

from collections.abc import Iterator

import pytest

from tests.native.places import PLACES, limited_to, threads
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


@pytest.fixture(params=PLACES or ("cpu",))
def device(request: pytest.FixtureRequest) -> Iterator[str]:
    """A device; the CPU once for each set of instructions.

    In one thread, so that it does not depend on the machine how rows are shared.
    """
    name, _, instructions = request.param.partition("-")
    if not instructions:
        yield name
        return
    with limited_to(instructions), threads(1):
        yield name

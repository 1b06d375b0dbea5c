# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""A pytest plugin for runs inside a tree of vLLM: quick, and of that tree alone."""

import gc
import sys
from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def quick_collections():
    """As in this repository's own tests, see `tests/conftest.py`."""
    gc.collect()
    gc.freeze()


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Fails a run that used another vLLM, or the fork."""
    vllm, fork = sys.modules["vllm"], sys.modules.get("vllm_eagle3")
    used = Path(str(vllm.__file__)).resolve()
    if not used.is_relative_to(session.config.rootpath.resolve()):
        pytest.exit(f"vLLM came from {used}", returncode=3)
    if fork is not None:
        pytest.exit(f"the fork was loaded from {fork.__file__}", returncode=3)

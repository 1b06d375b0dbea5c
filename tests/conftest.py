# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""What every test needs: a quiet, offline vLLM with the overlay active.

The overlay is loaded as vLLM loads it, through its plugin entry point, so the
tests exercise the installed distribution (``pip install -e .``). Run with
``VLLM_EAGLE3_DISABLE=1`` to see how the same tests fare on stock vLLM.
"""

import gc
import os
from pathlib import Path

import pytest

from tests.support.environment import AT_START

_REPOSITORY = Path(__file__).resolve().parent.parent

# Set before vLLM is imported, for it reads most of them once; child processes
# inherit them. A value that the caller has set stays.
_ENVIRONMENT = {
    # Small enough for several engines on one machine; in GiB.
    "VLLM_CPU_KVCACHE_SPACE": "1",
    "OMP_NUM_THREADS": "2",
    "VLLM_LOGGING_LEVEL": "INFO",
    "VLLM_NO_USAGE_STATS": "1",
    "VLLM_CACHE_ROOT": str(_REPOSITORY / ".cache" / "vllm"),
    "HF_HUB_OFFLINE": "1",
    "TRANSFORMERS_OFFLINE": "1",
    "TOKENIZERS_PARALLELISM": "false",
}
for _name, _value in _ENVIRONMENT.items():
    os.environ.setdefault(_name, _value)
    AT_START.setdefault(_name, _value)


def pytest_configure() -> None:
    """Activate the overlay, and refuse to run the tests without it."""
    from vllm.plugins import load_general_plugins

    load_general_plugins()
    if os.environ.get("VLLM_EAGLE3_DISABLE") == "1":
        return

    from vllm_eagle3.overlay import is_active

    if not is_active():
        raise pytest.UsageError(
            "The vllm-eagle3 overlay is not active, so these tests would test "
            "stock vLLM. Install the repository first (`make venv`, or `pip "
            "install -e . --no-deps --no-build-isolation`), then see "
            "`vllm-eagle3 status`."
        )


@pytest.fixture(autouse=True)
def line_at_start_is_due(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets each test see the line that a whole tree of processes logs once."""
    monkeypatch.delenv("_VLLM_EAGLE3_ANNOUNCED", raising=False)


@pytest.fixture(autouse=True)
def quick_collections(request: pytest.FixtureRequest) -> None:
    """Leaves out of later collections whatever is alive by now.

    vLLM's loader collects garbage twice, and beside a million objects of vLLM's that
    takes longer than all the rest of a small draft's load.
    """
    if not any(map(request.node.get_closest_marker, ("engine", "server"))):
        gc.collect()
        gc.freeze()

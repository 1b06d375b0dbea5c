# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""The fixture that runs functions where no plugin has been loaded yet."""

import multiprocessing
from collections.abc import Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import pytest

from tests.plugins.clean_process import CleanVllm, Probe, call


@pytest.fixture(scope="session")
def clean_vllm() -> Iterator[CleanVllm]:
    """Runs ``clean_vllm(function, *args, env={...})`` without any plugin loaded.

    pytest's own process has the overlay active, and there is no way back. A fork
    server imports vLLM once; each function then runs in a fresh fork of it, which
    costs milliseconds where a new interpreter costs seconds. ``function`` must be
    importable, for its name is what travels; what it returns or raises comes back.
    """
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["vllm.engine.arg_utils"])
    with ProcessPoolExecutor(1, context, max_tasks_per_child=1) as pool:

        def run(
            function: Probe, *arguments: Any, env: Mapping[str, str] | None = None
        ) -> Any:
            future = pool.submit(call, env or {}, function, *arguments)
            return future.result(timeout=120)

        yield run

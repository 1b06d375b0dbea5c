# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""The short form of the experiment, and made-up results that satisfy every check."""

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext

import pytest

from benchmarks.experiment import launch, prompts, rows
from tests.support.example import Models, example, models

from .short_form import ShortForm

# Only against an engine that hangs; a busy machine may take its time.
LIMIT_S = 1800

__all__ = ["example", "models", "short_form"]


@pytest.fixture(scope="session")
def short_form(
    models: Models,
    tmp_path_factory: pytest.TempPathFactory,
    pytestconfig: pytest.Config,
) -> ShortForm:
    """Starts nine engines in three processes, once per session."""
    chats = prompts.as_chat(prompts.load_prompts(rows.SHORT.prompts), models.target)
    capture = pytestconfig.pluginmanager.get_plugin("capturemanager")

    @contextmanager
    def shown() -> Iterator[None]:
        with capture.global_and_fixture_disabled() if capture else nullcontext():
            yield

    def say(line: str) -> None:
        with shown():
            print(f"\nacceptance: {line}", end="", flush=True)

    experiment = launch.Experiment(
        chats,
        tmp_path_factory.mktemp("acceptance"),
        models.folder,
        launch.Listener(row=say),
        LIMIT_S,
    )
    results = experiment.run(rows.short_form())
    return ShortForm(tuple(map(tuple, chats)), tuple(results))

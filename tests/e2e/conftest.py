# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""Runs each group of engines once, when the first test asks for it."""

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path

import pytest

from .run import PROGRESS

REPOSITORY = Path(__file__).resolve().parents[2]
# Only against an engine that hangs; a busy machine may take its time.
GROUP_LIMIT_S = 1200
Reports = dict[str, dict]


class EngineRuns:
    """Reports of all groups that were asked for so far."""

    def __init__(self, folder: Path, say: Callable[[str], None]) -> None:
        self._folder = folder
        self._say = say
        self._reports: dict[str, Reports] = {}

    def of(self, group: str) -> Reports:
        """The reports of one group, by run name."""
        if group not in self._reports:
            # Remembered before it is run: a group that fails is not tried again.
            self._reports[group] = {}
            self._reports[group] = self._run(group)
        return self._reports[group]

    def _run(self, group: str) -> Reports:
        result = self._folder / f"{group}.json"
        log = self._folder / f"{group}.log"
        command = [sys.executable, "-m", "tests.e2e.run", group]
        with (
            log.open("w") as log_file,
            subprocess.Popen(
                [*command, str(self._folder / "pairs"), str(result)],
                cwd=REPOSITORY,
                env=os.environ | {"PYTHONUNBUFFERED": "1"},
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
            ) as process,
        ):
            watchdog = threading.Timer(GROUP_LIMIT_S, process.kill)
            watchdog.daemon = True
            watchdog.start()
            assert process.stdout is not None
            for line in process.stdout:
                log_file.write(line)
                if line.startswith(PROGRESS):
                    self._say(line.rstrip())
            watchdog.cancel()
        if process.returncode != 0 or not result.exists():
            tail = "\n".join(log.read_text().splitlines()[-40:])
            raise RuntimeError(
                f"{' '.join(command)} exited with {process.returncode}; its last "
                f"lines:\n{tail}"
            )
        return {report["name"]: report for report in json.loads(result.read_text())}


@pytest.fixture(scope="session")
def engine_runs(
    tmp_path_factory: pytest.TempPathFactory, pytestconfig: pytest.Config
) -> EngineRuns:
    """The engines of all groups; progress goes to the terminal, captured or not."""
    capture = pytestconfig.pluginmanager.get_plugin("capturemanager")

    def say(line: str) -> None:
        with capture.global_and_fixture_disabled() if capture else nullcontext():
            print(f"\n{line}", end="", flush=True)

    return EngineRuns(tmp_path_factory.mktemp("e2e"), say)

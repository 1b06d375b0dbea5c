# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""Runs groups of rows in processes of their own, as many at a time as there are cores.

Each engine computes in one thread. That is as fast as one engine at a time in all of
them, and what an engine computes does not depend on the machine's load.
"""

import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from .results import RowResult, read_results
from .rows import Group
from .worker import ANSWERS_DONE, ROW_DONE, job_for

REPOSITORY = Path(__file__).resolve().parents[2]
MODELS = REPOSITORY / "build" / "smollm2"


class GroupFailed(RuntimeError):
    """A process ended without results."""


@dataclass(frozen=True)
class Listener:
    """Who is told how far things are.

    Attributes:
        answers: Called with the number of answers that have just been finished.
        row: Called with a line of text when a row is done.
    """

    answers: Callable[[int], None] = lambda count: None
    row: Callable[[str], None] = lambda line: None


@dataclass(frozen=True)
class Experiment:
    """Where and on what groups run.

    Attributes:
        prompts: Token ids of each question; a group takes as many as it needs.
        folder: For jobs, logs and results, one of each per group.
        models: Folder with `target` and the drafts.
        listener: Who is told how far things are.
        limit_s: After so many seconds a process is taken for hanging and ended.
    """

    prompts: list[list[int]]
    folder: Path
    models: Path = MODELS
    listener: Listener = Listener()
    limit_s: float = 4 * 3600

    def run(self, groups: Sequence[Group]) -> list[RowResult]:
        """Returns the results of all rows, in the groups' order.

        Raises:
            GroupFailed: A process ended without results; says where its log is.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as processes:
            found = processes.map(self._run_group, groups)
            return [result for results in found for result in results]

    def _run_group(self, group: Group) -> list[RowResult]:
        job, results, log = (
            self.folder / f"{group.name}{end}" for end in (".job", ".json", ".log")
        )
        prompts = self.prompts[: group.form.prompts]
        job.write_text(job_for(group, self.models, prompts))
        results.unlink(missing_ok=True)
        code = self._follow([str(job), str(results)], environment(group), log)
        found = read_results(results) if results.exists() else []
        if code != 0 or len(found) != len(group.rows):
            raise GroupFailed(
                f"the process of {group.name} ended with {code} after {len(found)} of "
                f"{len(group.rows)} rows; its log is {log}"
            )
        return found

    def _follow(self, arguments: list[str], env: dict[str, str], log: Path) -> int:
        """Runs a worker to its end and returns its exit code."""
        with (
            log.open("w") as log_file,
            subprocess.Popen(
                [sys.executable, "-m", "benchmarks.experiment.worker", *arguments],
                cwd=REPOSITORY,
                env=env,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
            ) as process,
        ):
            watchdog = threading.Timer(self.limit_s, process.kill)
            watchdog.daemon = True
            watchdog.start()
            for line in process.stdout or ():
                log_file.write(line)
                tell(self.listener, line.rstrip())
            watchdog.cancel()
        return process.returncode


def tell(listener: Listener, line: str) -> None:
    """Passes on what the worker printed for us."""
    if line.startswith(ANSWERS_DONE):
        listener.answers(int(line.removeprefix(ANSWERS_DONE)))
    elif line.startswith(ROW_DONE):
        listener.row(line.removeprefix(ROW_DONE).strip())


def environment(group: Group) -> dict[str, str]:
    """Returns the variables for a group's process."""
    inherited = {name: value for name, value in _inherited()}
    return inherited | {
        "PYTHONUNBUFFERED": "1",
        "OMP_NUM_THREADS": "1",
        "VLLM_CPU_OMP_THREADS_BIND": "nobind",
        "VLLM_CPU_KVCACHE_SPACE": "1",  # GiB
        "VLLM_EAGLE3_DISABLE": str(int(group.implementation == "stock")),
        # The engine lives in the worker's own process: it starts sooner, and
        # functions can be sent to it.
        "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
        "VLLM_USE_V2_MODEL_RUNNER": str(int(group.runner == "v2")),
        "VLLM_NO_USAGE_STATS": "1",
        "HF_HUB_OFFLINE": "1",
        "TOKENIZERS_PARALLELISM": "false",
    }


def _inherited() -> Iterator[tuple[str, str]]:
    """What must not leak in: another selection of plugins, a line already logged."""
    for name, value in os.environ.items():
        if name not in ("VLLM_PLUGINS", "_VLLM_EAGLE3_ANNOUNCED"):
            yield name, value

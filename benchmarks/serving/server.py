# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""A `vllm serve` of the example's pair, as `make serve` starts it."""

import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from ..output import REPOSITORY
from .plan import STOCK

LAUNCHER = REPOSITORY / "examples" / "smollm2_eagle3" / "serve.py"
START_LIMIT_S, EXIT_LIMIT_S = 600, 30
FURTHER_ARGUMENTS = (
    # Every round asks the same questions, and shall compute them.
    "--no-enable-prefix-caching",
    "--disable-uvicorn-access-log",
    *("--max-num-seqs", "16", "--max-model-len", "1024"),
)


class ServerFailed(RuntimeError):
    """A server ended, or did not answer; the message says where its log is."""


class Server:
    """A process group that serves, and sleeps when it is not asked.

    Args:
        implementation: `plan.FORK`, or `plan.STOCK` with the fork switched off.
        vocabulary: of the draft.
        log: file that receives what the server prints.
    """

    def __init__(self, implementation: str, vocabulary: str, log: Path) -> None:
        self.name, self.log = f"{implementation}, {vocabulary}", log
        self.port = _free_port()
        command = [sys.executable, str(LAUNCHER), "--port", str(self.port)]
        command += ["--vocab", vocabulary, "--", *FURTHER_ARGUMENTS]
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("wb") as file:
            self._process = subprocess.Popen(
                command,
                stdout=file,
                stderr=subprocess.STDOUT,
                env=_environment(implementation),
                start_new_session=True,
            )

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def wait(self) -> None:
        """Returns once the server answers.

        Raises:
            ServerFailed: It ended, or took longer than any server should.
        """
        deadline = time.monotonic() + START_LIMIT_S
        while not self._is_healthy():
            code = self._process.poll()
            if code is not None or time.monotonic() > deadline:
                state = "does not answer" if code is None else f"ended with {code}"
                raise ServerFailed(f"the server of {self.name} {state}; see {self.log}")
            time.sleep(1)

    @contextmanager
    def awake(self) -> Iterator[None]:
        """Lets the server run meanwhile; otherwise it is stopped, and takes no time."""
        self._signal(signal.SIGCONT)
        try:
            yield
        finally:
            self._signal(signal.SIGSTOP)

    def end(self) -> None:
        """Ends the server, and whatever it started."""
        self._signal(signal.SIGCONT)
        self._signal(signal.SIGINT)
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(EXIT_LIMIT_S)
        self._signal(signal.SIGKILL)
        self._process.wait()

    def _signal(self, number: int) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, number)

    def _is_healthy(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.url}/health", timeout=5) as response:
                return bool(response.status == 200)
        except OSError:
            return False


def _environment(implementation: str) -> dict[str, str]:
    # Neither another selection of plugins, nor that the fork's line was logged already.
    left_out = ("VLLM_PLUGINS", "_VLLM_EAGLE3_ANNOUNCED")
    inherited = {key: value for key, value in os.environ.items() if key not in left_out}
    return inherited | {
        "VLLM_EAGLE3_DISABLE": str(int(implementation == STOCK)),
        "VLLM_CPU_KVCACHE_SPACE": "1",  # GiB
        "VLLM_NO_USAGE_STATS": "1",
        "HF_HUB_OFFLINE": "1",
        "PYTHONUNBUFFERED": "1",
    }


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])

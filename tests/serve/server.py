# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""Starts `vllm serve` through the example's launcher, as `make serve` does."""

import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from contextlib import suppress
from pathlib import Path
from types import TracebackType

from openai import OpenAI

from tests.support.environment import AT_START
from tests.support.example import EXAMPLE

MODEL_NAME = "smollm2"
# Only against a server that hangs; a busy machine may take its time.
START_LIMIT_S = 600
EXIT_LIMIT_S = 60
# One line for each look at its health would bury the rest of the log.
_FURTHER_ARGUMENTS = ("--disable-uvicorn-access-log",)


class Server:
    """A `vllm serve` process and its log; a context manager.

    Args:
        log: file that receives what the server prints.
        launcher_arguments: for `examples/smollm2_eagle3/serve.py`.
        python: of the environment that serves; by default, of the tests'.
    """

    def __init__(
        self, log: Path, *launcher_arguments: str, python: str | Path = sys.executable
    ) -> None:
        self.log = log
        self.port = _free_port()
        self._command = [
            str(python),
            str(EXAMPLE / "serve.py"),
            *("--port", str(self.port), *launcher_arguments),
            *("--", *_FURTHER_ARGUMENTS),
        ]

    def __enter__(self) -> "Server":
        with self.log.open("wb") as log:
            # A group of its own, so that the engine's processes end with it.
            self.process = subprocess.Popen(
                self._command,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=AT_START | {"PYTHONUNBUFFERED": "1"},
                start_new_session=True,
            )
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
            with suppress(subprocess.TimeoutExpired):
                self.process.wait(EXIT_LIMIT_S)
        # Whatever is left of the group; nothing, usually.
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def output(self) -> str:
        return self.log.read_text(errors="replace")

    def wait_until_healthy(self) -> None:
        """Returns once the server answers."""
        code = self._wait_for_answer_or_exit()
        if code is not None:
            raise AssertionError(f"the server ended with {code}:\n{self._tail()}")

    def wait_until_exit(self) -> int:
        """Returns the exit code of a server that must never answer."""
        code = self._wait_for_answer_or_exit()
        if code is None:
            raise AssertionError(f"the server answers:\n{self._tail()}")
        return code

    def _wait_for_answer_or_exit(self) -> int | None:
        """Returns the exit code, or None; shows the log's newest line meanwhile."""
        deadline = time.monotonic() + START_LIMIT_S
        while not self._is_healthy():
            code = self.process.poll()
            if code is not None:
                return code
            if time.monotonic() > deadline:
                raise AssertionError(f"the server does not answer:\n{self._tail()}")
            print(f"waiting: {self._tail(1)[:150]}", flush=True)
            time.sleep(2)
        return None

    def client(self) -> OpenAI:
        return OpenAI(base_url=f"{self.url}/v1", api_key="none", max_retries=0)

    def counter(self, name: str) -> float:
        """Returns a counter from `/metrics`, summed over its labels."""
        with urllib.request.urlopen(f"{self.url}/metrics", timeout=30) as response:
            text = response.read().decode()
        values = re.findall(rf"^{re.escape(name)}(?:{{.*}})? (\S+)$", text, re.M)
        return sum(map(float, values))

    def _is_healthy(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.url}/health", timeout=5) as response:
                return response.status == 200
        except OSError:
            return False

    def _tail(self, lines: int = 40) -> str:
        return "\n".join(self.output().splitlines()[-lines:])


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]

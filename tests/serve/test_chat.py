# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""The terminal chat where no vLLM server answers; `test_serve.py` has it with one."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread

import pytest

from tests.support.example import EXAMPLE, Example

METRICS = """\
# HELP vllm:spec_decode_num_drafts_total Number of spec decoding drafts.
# TYPE vllm:spec_decode_num_drafts_total counter
vllm:spec_decode_num_drafts_total{engine="0",model_name="smollm2"} 5.0
vllm:spec_decode_num_drafts_total{engine="1",model_name="smollm2"} 3.0
# TYPE vllm:spec_decode_num_draft_tokens_total counter
vllm:spec_decode_num_draft_tokens_total{engine="0",model_name="smollm2"} 15.0
vllm:spec_decode_num_draft_tokens_total{engine="1",model_name="smollm2"} 9.0
# TYPE vllm:spec_decode_num_accepted_tokens_total counter
vllm:spec_decode_num_accepted_tokens_total{engine="0",model_name="smollm2"} 4.0
# TYPE vllm:spec_decode_num_accepted_tokens_per_pos_total counter
vllm:spec_decode_num_accepted_tokens_per_pos_total{engine="0",position="0"} 4.0
# TYPE vllm:request_success_total counter
vllm:request_success_total{engine="0",finished_reason="stop"} 7.0
"""


def chat(port: int, *arguments: str, questions: str = "") -> tuple[int, str, str]:
    """Returns exit code, output and error output of a chat with these questions."""
    ended = subprocess.run(
        [sys.executable, EXAMPLE / "chat.py", "--port", str(port), *arguments],
        input=questions,
        capture_output=True,
        text=True,
    )
    return ended.returncode, ended.stdout, ended.stderr


@contextmanager
def other_server() -> Iterator[int]:
    """Yields the port of a web server that knows nothing of models."""
    with HTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        yield server.server_port
        server.shutdown()
        thread.join()


def test_without_a_server_it_says_how_to_start_one() -> None:
    with other_server() as port:
        pass  # Nothing listens there any more.

    code, output, error = chat(port, questions="Hello?\n")

    assert code == 2
    assert output == ""
    (line,) = error.splitlines()
    assert f"no server listens on port {port}" in line
    assert "`make serve`" in line


def test_another_kind_of_server_is_told_apart() -> None:
    with other_server() as port:
        code, _, error = chat(port)

    assert code == 2
    assert f"what listens on port {port} is no vLLM server" in error


def test_counters_are_read_from_the_metrics_of_all_engines(example: Example) -> None:
    speculation = example("speculation").Speculation

    found = speculation.in_metrics(METRICS)

    assert found == speculation(drafts=8, draft_tokens=24, accepted_tokens=4)
    assert str(found - speculation(3, 9, 1)) == (
        "3 of 15 drafted tokens accepted, mean acceptance length 1.60"
    )
    assert str(found - found) == "nothing was drafted"


def test_an_answer_that_is_interrupted_leaves_the_chat_going(
    example: Example, capsys: pytest.CaptureFixture[str]
) -> None:
    chat_module = example("chat")

    class Interrupted:
        model = "smollm2"

        def answer(self, question: str) -> Iterator[str]:
            yield f"{question} Once upon"
            raise KeyboardInterrupt

    chat_module.show(chat_module.Console(), Interrupted(), "A story?")

    assert capsys.readouterr().out == "smollm2> A story? Once upon (stopped)\n"

# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""Chats with `vllm serve` of the example's pair over HTTP, as a user does.

The first server has no draft; its answers are those that speculation must not change.
"""

import re
import shutil
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from openai import OpenAI
from safetensors.torch import load_file, save_file

from tests.support.example import Models

from .as_shown import output_of
from .questions import QUESTION, QUESTIONS, REAL_QUESTION, STORY
from .server import MODEL_NAME, Server
from .test_chat import chat

pytestmark = pytest.mark.server

ANSWER_TOKENS = 24
REAL_ANSWER_TOKENS = 128
LEAST_ACCEPTED = 0.2
# The log sums up a stretch of time; only against one that never does.
LOG_LIMIT_S = 60
DRAFTS, DRAFTED, ACCEPTED = (
    f"vllm:spec_decode_num_{name}_total"
    for name in ("drafts", "draft_tokens", "accepted_tokens")
)


def ask(client: OpenAI, question: str, tokens: int = ANSWER_TOKENS) -> str:
    answer = client.chat.completions.create(
        model=MODEL_NAME,
        messages=[{"role": "user", "content": question}],
        temperature=0,
        max_tokens=tokens,
    )
    return answer.choices[0].message.content or ""


def counters(server: Server) -> tuple[float, ...]:
    """Returns how many drafts, drafted tokens and accepted tokens there were."""
    return tuple(server.counter(name) for name in (DRAFTS, DRAFTED, ACCEPTED))


@pytest.fixture(scope="module")
def answers(models: Models, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Answers of a server without speculation, asked one after the other."""
    log = tmp_path_factory.mktemp("plain") / "server.log"
    with Server(log, "--spec-tokens", "0") as server:
        server.wait_until_healthy()
        client = server.client()
        answers = {question: ask(client, question) for question in QUESTIONS}
        answers[REAL_QUESTION] = ask(client, REAL_QUESTION, REAL_ANSWER_TOKENS)
        assert server.counter(DRAFTS) == 0
    return answers


@pytest.fixture(scope="module")
def server(
    answers: dict[str, str], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Server]:
    """A server with the draft; `answers` comes first, so that only one runs."""
    del answers
    with Server(tmp_path_factory.mktemp("eagle3") / "server.log") as server:
        server.wait_until_healthy()
        yield server


def test_a_chat_answer_is_the_one_without_speculation(
    server: Server, answers: dict[str, str]
) -> None:
    answer = ask(server.client(), QUESTION)

    assert "The capital of France is Paris" in answer
    assert answer == answers[QUESTION]


def test_the_commands_of_the_quick_start_show_what_they_say(server: Server) -> None:
    before = counters(server)
    answer = output_of(server, "curl -s http://localhost:8000/v1/chat/completions")
    metrics = output_of(server, "curl -s http://localhost:8000/metrics")

    assert answer == ['"content":"The capital of France is Paris."']
    assert sorted(line.partition("{")[0] for line in metrics) == sorted(
        (DRAFTS, DRAFTED, ACCEPTED)
    )
    values = [float(line.split()[-1]) for line in metrics]
    assert sorted(values) == sorted(counters(server))
    assert counters(server) > before


def test_streaming_yields_the_same_answer(
    server: Server, answers: dict[str, str]
) -> None:
    stream = server.client().chat.completions.create(
        model=MODEL_NAME,
        messages=[{"role": "user", "content": STORY}],
        temperature=0,
        max_tokens=ANSWER_TOKENS,
        stream=True,
    )
    pieces = [chunk.choices[0].delta.content or "" for chunk in stream]

    assert len(pieces) > 2, "not a stream"
    assert "".join(pieces) == answers[STORY]


def test_sixteen_users_at_once_get_the_same_answers(
    server: Server, answers: dict[str, str]
) -> None:
    # In float32, the rounding that depends on the batch is far smaller than the
    # distance between the two best tokens of these answers, so equality holds.
    client = server.client()
    with ThreadPoolExecutor(len(QUESTIONS)) as users:
        found = users.map(lambda question: ask(client, question), QUESTIONS)

    assert list(found) == [answers[question] for question in QUESTIONS]


def test_a_fifth_of_what_is_drafted_for_a_real_question_is_accepted(
    server: Server, answers: dict[str, str]
) -> None:
    before = counters(server)
    answer = ask(server.client(), REAL_QUESTION, REAL_ANSWER_TOKENS)
    after = counters(server)
    drafts, drafted, accepted = (b - a for a, b in zip(before, after, strict=True))

    assert answer == answers[REAL_QUESTION]
    assert drafted == 3 * drafts
    assert accepted >= LEAST_ACCEPTED * drafted
    # Each step yields the accepted tokens and one more; the first needs no draft. A
    # step may go past the end.
    assert REAL_ANSWER_TOKENS <= 1 + drafts + accepted <= REAL_ANSWER_TOKENS + 3


def test_a_chat_in_the_terminal_keeps_the_conversation_and_says_what_was_accepted(
    server: Server,
) -> None:
    before = counters(server)
    first, second = "What is a rainbow?", "Say it again in one short sentence."
    code, output, error = chat(server.port, questions=f"{first}\n\n{second}\n")
    after = counters(server)
    drafts, drafted, accepted = (b - a for a, b in zip(before, after, strict=True))

    assert code == 0, error
    said, again = re.findall(r"^smollm2> (.*?)\n\[", output, re.M | re.S)
    conversation = [
        {"role": "user", "content": first},
        {"role": "assistant", "content": said},
        {"role": "user", "content": second},
    ]
    asked_by_hand = server.client().chat.completions.create(
        model=MODEL_NAME, messages=conversation, temperature=0
    )
    assert again == asked_by_hand.choices[0].message.content
    found = re.findall(
        r"^\[(\d+) of (\d+) drafted tokens accepted, "
        r"mean acceptance length (\d\.\d\d)\]$",
        output,
        re.MULTILINE,
    )
    assert len(found) == 2
    assert sum(int(each[0]) for each in found) == accepted
    assert sum(int(each[1]) for each in found) == drafted == 3 * drafts
    for each in found:
        assert float(each[2]) == pytest.approx(
            1 + 3 * int(each[0]) / int(each[1]), abs=0.006
        )


def test_a_chat_survives_a_question_that_the_server_refuses(server: Server) -> None:
    code, output, error = chat(
        server.port, "--temperature", "-1", questions="Hello?\nAre you there?\n"
    )

    assert code == 0, error
    assert output.count("(refused: ") == 2
    assert "temperature" in output


def test_the_log_says_what_the_metrics_say(server: Server) -> None:
    ask(server.client(), QUESTION)
    expected = server.counter(ACCEPTED)
    assert expected > 0
    deadline = time.monotonic() + LOG_LIMIT_S
    while (found := accepted_in_log(server.output())) < expected:
        assert time.monotonic() < deadline, f"{found} of {expected} in the log"
        time.sleep(1)

    assert found == expected


def accepted_in_log(log: str) -> int:
    lines = re.findall(r"Mean acceptance length: .* Accepted: (\d+) tokens", log)
    return sum(map(int, lines))


def test_the_log_says_that_the_fork_is_active_and_what_the_draft_is(
    server: Server,
) -> None:
    output = server.output()

    assert output.count("is active on vLLM") == 1
    assert "Eagle3LlamaForCausalLM: full vocabulary (49152), no remap" in output


def test_the_reduced_vocabulary_changes_no_answer(
    answers: dict[str, str], tmp_path: Path
) -> None:
    with Server(tmp_path / "server.log", "--vocab", "reduced") as server:
        server.wait_until_healthy()
        found = ask(server.client(), REAL_QUESTION, REAL_ANSWER_TOKENS)
        drafts, drafted, accepted = counters(server)
        output = server.output()

    assert "Eagle3LlamaForCausalLM: reduced vocabulary" in output
    assert found == answers[REAL_QUESTION]
    assert drafted == 3 * drafts
    # Some tokens of the answer cannot be proposed; most can.
    assert accepted >= LEAST_ACCEPTED / 2 * drafted


def test_a_draft_with_a_wrong_offset_ends_the_server_at_start(
    models: Models, tmp_path: Path
) -> None:
    broken = tmp_path / "draft"
    shutil.copytree(models.draft("reduced"), broken)
    weights = load_file(broken / "model.safetensors")
    weights["d2t"][40] = 50000
    save_file(weights, broken / "model.safetensors")

    arguments = ("--target", str(models.target), "--draft", str(broken))
    with Server(tmp_path / "server.log", *arguments) as server:
        code = server.wait_until_exit()
        output = server.output()

    assert code != 0
    assert (
        "d2t[40] maps draft id 40 to target id 50040, outside the target vocabulary "
        "[0, 49152)"
    ) in output
    assert "Application startup complete" not in output

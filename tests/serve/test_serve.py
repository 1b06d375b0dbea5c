# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""Chats with `vllm serve` of the example's pair over HTTP, as a user does.

Two servers run, one after the other: the first without a draft, for the answers that
speculation must not change.
"""

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import torch
from openai import OpenAI
from safetensors.torch import load_file, save_file

from .conftest import Pair
from .server import MODEL_NAME, Server

pytestmark = pytest.mark.server

QUESTION = "What is the capital of France? Answer in one sentence."
# The draft proposes what followed the newest token before, so here it is often right.
REPEAT = "Repeat this three times: the quick brown fox jumps over the lazy dog."
QUESTIONS = [
    QUESTION,
    REPEAT,
    "Name three primary colours.",
    "Write one sentence about the sea.",
    "How many days are there in a week?",
    "Explain in one sentence why the sky is blue.",
    "Give me a rhyme for the word cat.",
    "What do bees make?",
    "Say hello in Spanish.",
    "What is the opposite of hot?",
    "List two kinds of fruit.",
    "Write the first line of a story about a dragon.",
    "What is water made of?",
    "Who wrote Romeo and Juliet?",
    "Count from one to ten.",
    "What should I wear when it rains?",
]
ANSWER_TOKENS = 24


def ask(client: OpenAI, question: str) -> str:
    answer = client.chat.completions.create(
        model=MODEL_NAME,
        messages=[{"role": "user", "content": question}],
        temperature=0,
        max_tokens=ANSWER_TOKENS,
    )
    return answer.choices[0].message.content or ""


@pytest.fixture(scope="module")
def answers(pair: Pair, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Answers of a server without speculation, asked one after the other."""
    log = tmp_path_factory.mktemp("plain") / "server.log"
    with Server(log, "--spec-tokens", "0") as server:
        server.wait_until_healthy()
        client = server.client()
        answers = {question: ask(client, question) for question in QUESTIONS}
        assert server.counter("vllm:spec_decode_num_drafts_total") == 0
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


def test_streaming_yields_the_same_answer(
    server: Server, answers: dict[str, str]
) -> None:
    stream = server.client().chat.completions.create(
        model=MODEL_NAME,
        messages=[{"role": "user", "content": REPEAT}],
        temperature=0,
        max_tokens=ANSWER_TOKENS,
        stream=True,
    )
    pieces = [chunk.choices[0].delta.content or "" for chunk in stream]

    assert len(pieces) > 2, "not a stream"
    assert "".join(pieces) == answers[REPEAT]


def test_sixteen_users_at_once_get_the_same_answers(
    server: Server, answers: dict[str, str]
) -> None:
    # In float32, the rounding that depends on the batch is far smaller than the
    # distance between the two best tokens of these answers, so equality holds.
    client = server.client()
    with ThreadPoolExecutor(len(QUESTIONS)) as users:
        found = dict(
            zip(
                QUESTIONS,
                users.map(lambda question: ask(client, question), QUESTIONS),
                strict=True,
            )
        )

    assert found == answers


def test_the_metrics_count_drafts_and_accepted_tokens(server: Server) -> None:
    names = ("num_drafts", "num_draft_tokens", "num_accepted_tokens")
    metrics = [f"vllm:spec_decode_{name}_total" for name in names]
    before = [server.counter(metric) for metric in metrics]
    ask(server.client(), REPEAT)
    drafts, drafted, accepted = (
        server.counter(metric) - start
        for metric, start in zip(metrics, before, strict=True)
    )

    assert drafts > 0
    assert drafted == 3 * drafts
    # An untrained draft, but not a blind one: some guesses are right, and with them
    # the answer takes fewer steps than tokens.
    assert 0 < accepted < drafted
    assert drafts < ANSWER_TOKENS


def test_the_log_says_that_the_fork_is_active_and_what_the_draft_is(
    server: Server,
) -> None:
    output = server.output()

    assert output.count("is active on vLLM") == 1
    assert "Eagle3LlamaForCausalLM: full vocabulary (49152), no remap" in output


def test_a_draft_with_a_wrong_offset_ends_the_server_at_start(
    pair: Pair, tmp_path: Path
) -> None:
    broken = write_reduced_draft(pair.draft, tmp_path / "draft", wrong_at=40)
    arguments = ("--target", str(pair.target), "--draft", str(broken))
    with Server(tmp_path / "server.log", *arguments) as server:
        code = server.wait_until_exit()
        output = server.output()

    assert code != 0
    assert (
        "d2t[40] maps draft id 40 to target id 50040, outside the target vocabulary "
        "[0, 49152)"
    ) in output
    assert "Application startup complete" not in output


def write_reduced_draft(draft: Path, folder: Path, wrong_at: int) -> Path:
    """Writes `draft` with a head of 8192 rows and one offset out of range."""
    size, hidden = 8192, 576
    weights = load_file(draft / "model.safetensors")
    weights["lm_head.weight"] = torch.zeros(size, hidden, dtype=torch.bfloat16)
    weights["d2t"] = torch.zeros(size, dtype=torch.int64)
    weights["d2t"][wrong_at] = 50000
    folder.mkdir()
    save_file(weights, folder / "model.safetensors")
    config = json.loads((draft / "config.json").read_text())
    config["draft_vocab_size"] = size
    (folder / "config.json").write_text(json.dumps(config))
    return folder

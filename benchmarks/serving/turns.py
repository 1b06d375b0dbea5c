# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""Starts stock and fork for one vocabulary, and asks them in turn."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

from .client import ask
from .plan import FORK, STOCK, Load, Plan, order
from .results import Measured, Row
from .server import Server

Prompts = Sequence[list[int]]


def measure(
    plan: Plan, prompts: Prompts, logs: Path, done: Callable[[str], None]
) -> Iterator[Row]:
    """Yields a row for each vocabulary and load.

    Args:
        prompts: token ids of each question.
        logs: folder for what the servers print.
        done: called after each measurement with what is going on.
    """
    for vocabulary in plan.vocabularies:
        with ExitStack() as running:
            servers = {}
            for name in (STOCK, FORK):
                log = logs / f"{name}-{vocabulary}.log"
                servers[name] = Server(name, vocabulary, log)
                running.callback(servers[name].end)
            yield from _in_turn(vocabulary, servers, plan, prompts, done)


def _in_turn(
    vocabulary: str,
    servers: dict[str, Server],
    plan: Plan,
    prompts: Prompts,
    done: Callable[[str], None],
) -> Iterator[Row]:
    # Both start at the same time; neither is asked before both are ready.
    for server in servers.values():
        server.wait()
    for server in servers.values():
        with server.awake():
            for load in plan.loads:
                ask(server, load, prompts)
    rounds: dict[Load, list[dict[str, Measured]]] = {load: [] for load in plan.loads}
    for number in range(plan.rounds):
        for load in plan.loads:
            found = {}
            for name in order(number):
                with servers[name].awake():
                    found[name] = ask(servers[name], load, prompts)
                done(f"{vocabulary}, {load.concurrency} at a time, {name}")
            rounds[load].append(found)
    for load in plan.loads:
        yield Row.of(vocabulary, load, rounds[load])

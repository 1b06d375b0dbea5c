# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""Runs one engine over two nodes of vLLM that are both this machine, on a CPU.

    make two-nodes

First both nodes have the overlay: output and counts must be those computed by hand.
Then one has it switched off: the engine must end at start and say which. Each node is
started as on two machines, the second by `vllm serve --headless`, and has one of two
ranks.
"""

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(REPOSITORY))

from tests.e2e.attention import MAX_MODEL_LEN  # noqa: E402
from tests.e2e.cases import make_requests  # noqa: E402
from tests.e2e.checkpoints import DRAFT_CASES, write_draft, write_target  # noqa: E402
from tests.e2e.simulation import simulate  # noqa: E402

OFF = {"VLLM_EAGLE3_DISABLE": "1"}
DRAFT = "reduced"
REQUESTS = make_requests(6, 24)
# Only against an engine that hangs; a busy machine may take its time.
LIMIT_S = 300
AS_EXPECTED = "output and counts as expected"
REFUSED = "ValueError: vllm-eagle3 is missing or inactive on rank 1 of the 2 ranks"


@dataclass(frozen=True)
class Scenario:
    """What the second node has, and what the first must say."""

    title: str
    environment: dict[str, str]
    expected: str


SCENARIOS = (
    Scenario("both nodes with the fork", {}, AS_EXPECTED),
    Scenario("one node without it", OFF, REFUSED),
)


def options(rank: int, folder: Path, port: int) -> dict[str, Any]:
    """Returns the engine's arguments on one node, by their names in Python."""
    return {
        "model": str(folder / "target"),
        "speculative_config": {
            "method": "eagle3",
            "model": str(folder / DRAFT),
            "num_speculative_tokens": 3,
        },
        "skip_tokenizer_init": True,
        "dtype": "float32",
        "max_model_len": MAX_MODEL_LEN,
        "max_num_seqs": len(REQUESTS),
        "enforce_eager": True,
        "tensor_parallel_size": 2,
        "distributed_executor_backend": "mp",
        "nnodes": 2,
        "node_rank": rank,
        "master_addr": "127.0.0.1",
        "master_port": port,
    }


def first_node(folder: Path, port: int) -> None:
    """Generates, and compares with what a simulation expects."""
    from vllm import LLM

    from tests.e2e.engines import _generate, _read_counts

    llm = LLM(disable_log_stats=False, **options(0, folder, port))
    outputs = _generate(llm, REQUESTS)
    counts, expected = (
        _read_counts(llm),
        simulate(DRAFT_CASES[DRAFT].vocabulary, REQUESTS),
    )
    right = outputs == [request.expected_output for request in REQUESTS]
    print(AS_EXPECTED if right and counts == expected else f"{counts}, not {expected}")


def second_node(folder: Path, port: int) -> None:
    """Becomes `vllm serve --headless`."""
    arguments = ["vllm", "serve", "--headless"]
    for name, value in options(1, folder, port).items():
        if name == "model":
            arguments.append(value)
            continue
        arguments.append("--" + name.replace("_", "-"))
        if value is not True:
            arguments.append(
                json.dumps(value) if isinstance(value, dict) else f"{value}"
            )
    os.execv(Path(sys.executable).with_name("vllm"), arguments)


def run(scenario: Scenario, folder: Path) -> bool:
    """Starts both nodes, and tells whether the first said what is expected."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    nodes, logs = [], [folder / f"node{rank}.log" for rank in range(2)]
    for rank, environment in enumerate(({}, scenario.environment)):
        command = [sys.executable, __file__, str(rank), str(folder), str(port)]
        settings = os.environ | _settings(rank) | environment
        with logs[rank].open("w") as log:
            nodes.append(
                subprocess.Popen(
                    command,
                    env=settings,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                )
            )
    try:
        nodes[0].wait(LIMIT_S)
    except subprocess.TimeoutExpired:
        print(f"The first node did not end within {LIMIT_S} seconds.")
    finally:
        for node in nodes:
            # Of a node that has ended, workers may be left, or nothing.
            with suppress(ProcessLookupError):
                os.killpg(node.pid, signal.SIGKILL)
            node.wait()
    said = logs[0].read_text()
    if scenario.expected not in said:
        print(said[-4000:])
    return scenario.expected in said


def _settings(rank: int) -> dict[str, str]:
    cores = sorted(os.sched_getaffinity(0))
    return {
        "OMP_NUM_THREADS": "1",
        "VLLM_CPU_KVCACHE_SPACE": "1",
        "VLLM_CPU_OMP_THREADS_BIND": str(cores[rank % len(cores)]),
        "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
        "VLLM_WORKER_SHUTDOWN_TIMEOUT_SECONDS": "1",
        "VLLM_NO_USAGE_STATS": "1",
    }


def main() -> int:
    """Returns 0 if both scenarios came out as they must."""
    if len(sys.argv) > 1:
        rank, folder, port = int(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])
        (second_node if rank else first_node)(folder, port)
        return 0
    failed = False
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        write_target("llama", folder / "target")
        write_draft("llama", DRAFT, folder / DRAFT)
        for scenario in SCENARIOS:
            good = run(scenario, folder)
            failed |= not good
            print(
                f"{scenario.title}: {'as expected' if good else 'FAILED'}", flush=True
            )
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())

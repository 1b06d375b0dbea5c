# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""Times what the overlay adds to `import vllm` and to the start of an engine.

Processes that import vLLM and load its plugins, and processes that start an engine with
the example's pair besides, with the overlay and with it switched off in turn. `make
bench` runs this among others.

    python -m benchmarks.startup
    python -m benchmarks.startup --short --output build/try
"""

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Iterator

from tqdm import tqdm

from . import machine, output
from .experiment.launch import MODELS
from .serving.plan import FORK, STOCK, order
from .starting.probe import MARK
from .starting.results import Row

PROBE = "benchmarks.starting.probe"
# What is started, and in how many pairs.
STARTS, SHORT = {"import": 2, "engine": 3}, {"import": 2}
LIMIT_S = 600


class ProbeFailed(RuntimeError):
    """A process ended without times; the message has the end of what it said."""


def main() -> int:
    options = parse()
    missing = [n for n in ("target", "draft-full") if not (MODELS / n).is_dir()]
    if missing:
        lacking = f"{MODELS} lacks {', '.join(missing)}"
        print(f"startup: {lacking}; run `make drafts`.", file=sys.stderr)
        return 2
    try:
        rows = list(all_rows(SHORT if options.short else STARTS))
    except ProbeFailed as error:
        print(f"startup: {error}", file=sys.stderr)
        return 1
    report = output.report(machine.describe(), rows)
    print(f"Written to {output.write(options.output, 'startup', report)}.")
    return 0


def parse() -> argparse.Namespace:
    parser = output.parser(__doc__, folder="the report", short="few starts")
    return parser.parse_args()


def all_rows(starts: dict[str, int]) -> Iterator[Row]:
    """All rows, under a progress bar that counts processes."""
    # One start of each that is not counted brings the files into memory.
    total = sum(2 * pairs for pairs in starts.values()) + 2
    with tqdm(total=total, desc="start-up", unit="start") as bar:
        for name in order(0):
            run("import", name)
            bar.update()
        for start, pairs in starts.items():
            taken: dict[str, list[dict[str, float]]] = {STOCK: [], FORK: []}
            for number in range(pairs):
                for name in order(number):
                    taken[name].append(run(start, name))
                    bar.update()
            for stage in taken[STOCK][0]:
                stock, fork = ([one[stage] for one in taken[n]] for n in (STOCK, FORK))
                row = Row.of(start, stage, stock, fork)
                bar.write(str(row))
                yield row


def run(start: str, implementation: str) -> dict[str, float]:
    """Returns the seconds of each stage of one process.

    Raises:
        ProbeFailed: It ended in another way.
    """
    models = [str(MODELS / name) for name in ("target", "draft-full")]
    command = [sys.executable, "-m", PROBE, *(models if start == "engine" else [])]
    done = subprocess.run(
        command,
        cwd=output.REPOSITORY,
        env=environment(implementation),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=LIMIT_S,
    )
    lines = done.stdout.splitlines()
    found = next((line for line in lines if line.startswith(MARK)), None)
    if found is None:
        said = "\n".join(lines[-20:])
        raise ProbeFailed(f"{start}, {implementation} ended with {said}")
    stages: dict[str, float] = json.loads(found.removeprefix(MARK))
    return stages


def environment(implementation: str) -> dict[str, str]:
    """Returns the variables for a process."""
    left_out = ("VLLM_PLUGINS", "_VLLM_EAGLE3_ANNOUNCED")
    inherited = {key: value for key, value in os.environ.items() if key not in left_out}
    return inherited | {
        "VLLM_EAGLE3_DISABLE": str(int(implementation == STOCK)),
        "VLLM_CPU_KVCACHE_SPACE": "1",  # GiB
        "VLLM_CPU_OMP_THREADS_BIND": "nobind",
        "OMP_NUM_THREADS": str(len(os.sched_getaffinity(0))),
        "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
        "VLLM_NO_USAGE_STATS": "1",
        "HF_HUB_OFFLINE": "1",
        "TOKENIZERS_PARALLELISM": "false",
    }


if __name__ == "__main__":
    sys.exit(main())

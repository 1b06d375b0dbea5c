# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""Serves the example's pair with stock vLLM and with the fork, in turn, and compares.

Two `vllm serve` at a time, one with the fork switched off. They are asked the same
questions in turn, one sleeping while the other answers, with 1, 4 and 16 requests at a
time; full vocabulary first, then the reduced one. `make bench` runs this among others.

    python -m benchmarks.serve
    python -m benchmarks.serve --short --output build/try
"""

import argparse
import signal
import sys
from pathlib import Path

from tqdm import tqdm

from . import machine, output
from .experiment.launch import MODELS
from .experiment.prompts import as_chat, load_prompts
from .serving.plan import SHORT, Plan
from .serving.results import Row


def main() -> int:
    options = parse()
    plan = SHORT if options.short else Plan()
    needed = ("target", *(f"draft-{name}" for name in plan.vocabularies))
    missing = [name for name in needed if not (MODELS / name).is_dir()]
    if missing:
        lacking = f"{MODELS} lacks {', '.join(missing)}"
        print(f"serve: {lacking}; run `make drafts`.", file=sys.stderr)
        return 2
    # The servers are no children of a terminal, and must not outlive this process.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        rows = all_rows(plan, options.output)
    except RuntimeError as error:
        print(f"serve: {error}", file=sys.stderr)
        return 1
    report = output.report(machine.describe(), rows)
    print(f"Written to {output.write(options.output, 'serve', report)}.")
    return 0


def parse() -> argparse.Namespace:
    parser = output.parser(
        __doc__, folder="report and logs", short="two rounds of two loads, reduced only"
    )
    return parser.parse_args()


def all_rows(plan: Plan, folder: Path) -> list[Row]:
    """All rows, under a progress bar that counts measurements."""
    from .serving.turns import measure

    count = max(load.requests for load in plan.loads)
    prompts = as_chat(load_prompts(count), MODELS / "target")
    rows = []
    with tqdm(total=plan.measurements, desc="serving", unit="run") as bar:

        def done(what: str) -> None:
            bar.set_postfix_str(what)
            bar.update()

        bar.set_postfix_str("starting servers")
        for row in measure(plan, prompts, folder / "servers", done):
            bar.write(str(row))
            rows.append(row)
    return rows


if __name__ == "__main__":
    sys.exit(main())

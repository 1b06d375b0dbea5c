# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""Runs one group of engines: ``python -m tests.e2e.run v1 pairs reports.json``."""

import argparse
import json
import os
import time
from dataclasses import asdict
from pathlib import Path

from .cases import GROUPS

PROGRESS = "e2e:"


def main() -> None:
    """Run the group's engines in order and write their reports as one JSON list."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("group", choices=sorted(GROUPS))
    parser.add_argument("pairs", type=Path, help="folder for the checkpoints")
    parser.add_argument("reports", type=Path, help="JSON file to write")
    arguments = parser.parse_args()

    group = GROUPS[arguments.group]
    os.environ.update(group.environment)
    if group.v2_runner:
        from . import v2_on_cpu

        v2_on_cpu.enable()
    # After the environment is set: this imports vLLM.
    from .engines import run_engine

    reports = []
    for number, run in enumerate(group.runs, start=1):
        started = time.monotonic()
        report = run_engine(run, group, arguments.pairs)
        reports.append(asdict(report))
        place = f"{arguments.group} {number}/{len(group.runs)} {run.name}"
        outcome = report.error.splitlines()[0] if report.error else "ran"
        seconds = time.monotonic() - started
        print(f"{PROGRESS} {place}: {outcome} ({seconds:.0f} s)", flush=True)
    arguments.reports.write_text(json.dumps(reports))


if __name__ == "__main__":
    main()

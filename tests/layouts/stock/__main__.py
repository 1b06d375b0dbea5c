# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""The command: two processes that record, and their tables."""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.layouts.stock import __doc__ as description
from tests.layouts.stock import counting
from tests.layouts.stock.outcomes import Case, Outcome

_SWITCHES = {"stock": {"VLLM_EAGLE3_DISABLE": "1"}, "fork": {"VLLM_EAGLE3_DISABLE": ""}}


def main() -> int:
    """Record, count, print; 1 if the fork does not do what the tests ask."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.layouts.stock",
        description=description,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--only", metavar="EXPRESSION", help="as pytest's -k")
    parser.add_argument(
        "--write", action="store_true", help=f"into {counting.DOCUMENT.name} as well"
    )
    options = parser.parse_args()
    if options.write and options.only:
        parser.error("--write needs all cases, so leave --only out")
    stock, fork = (_record(name, options.only) for name in _SWITCHES)
    text = "\n".join(
        (
            f"{counting.counts(stock, fork)}\n",
            "### Public drafts\n",
            f"{counting.public_drafts(stock, fork)}\n",
            "### Odd cases\n",
            f"{counting.odd_cases(stock, fork)}\n",
        )
    )
    print(text)
    if options.write:
        counting.write(text)
    wrong = [case for case in fork if not case.is_as_it_should_be]
    for case in wrong:
        print(f"{case.test} [{case.parameters}]: {case.outcome}", file=sys.stderr)
    return 1 if wrong else 0


def _record(name: str, only: str | None) -> list[Case]:
    """Run the tests in a process of its own; its bar shows on standard error."""
    environment = {**os.environ, "VLLM_LOGGING_LEVEL": "CRITICAL", **_SWITCHES[name]}
    with tempfile.TemporaryDirectory() as scratch:
        file = Path(scratch) / "cases.jsonl"
        command = [sys.executable, "-m", "tests.layouts.stock.recording", str(file)]
        done = subprocess.run(
            command + (["-k", only] if only else []),
            env=environment,
            stdout=subprocess.DEVNULL,
        )
        if done.returncode:
            raise SystemExit(f"The tests of the {name} run did not end well.")
        lines = file.read_text().splitlines()
    return [_case(json.loads(line)) for line in lines]


def _case(fields: dict[str, str | bool]) -> Case:
    return Case(**{**fields, "outcome": Outcome(str(fields["outcome"]))})  # type: ignore[arg-type]


if __name__ == "__main__":
    sys.exit(main())

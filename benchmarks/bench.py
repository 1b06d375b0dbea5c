# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""Measures all that `docs/performance.md` shows, one after the other, and writes it.

The draft head, then start-up, then serving. Let the machine do nothing else meanwhile.
With `--only-write`, the page and its pictures are made again from what was measured.

    make bench
    python -m benchmarks.bench --only-write
"""

import argparse
import subprocess
import sys
import time

from . import output
from .page import publish

PARTS = {
    "draft_head": "the draft head, alone",
    "startup": "start-up, with and without the overlay",
    "serve": "serving, stock and fork in turn",
}


def main() -> int:
    options = parse()
    if options.only_write:
        publish.write()
        return 0
    started = time.monotonic()
    for number, (name, title) in enumerate(PARTS.items(), start=1):
        print(f"[{number}/{len(PARTS)}] {title}", flush=True)
        if run(name, options) != 0:
            print(f"bench: benchmarks.{name} failed, see above", file=sys.stderr)
            return 1
        print(f"      after {(time.monotonic() - started) / 60:.1f} min", flush=True)
    if options.short:
        print(f"A short run is not published; its reports are in {options.output}.")
    else:
        publish.publish(options.output)
        print(f"Written: {publish.PAGE} and the README's figures.")
    return 0


def parse() -> argparse.Namespace:
    parser = output.parser(
        __doc__, folder="reports and logs", short="a few minutes' try"
    )
    parser.add_argument("--only-write", action="store_true", help="measure nothing")
    return parser.parse_args()


def run(name: str, options: argparse.Namespace) -> int:
    """Runs one benchmark in a process of its own, and returns its exit code."""
    command = [sys.executable, "-m", f"benchmarks.{name}"]
    command += ["--output", str(options.output.absolute())]
    command += ["--short"] if options.short else []
    return subprocess.run(command, cwd=output.REPOSITORY).returncode


if __name__ == "__main__":
    sys.exit(main())

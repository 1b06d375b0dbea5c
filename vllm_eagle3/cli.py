# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""The command ``vllm-eagle3``."""

import argparse
import os
import sys
from collections.abc import Sequence

from vllm_eagle3 import __version__, status
from vllm_eagle3.check import command as check
from vllm_eagle3.drift import command as drift
from vllm_eagle3.export import command as export_patch

# Each adds one sub-command: a module with `add_parser(commands)`, which sets the
# default `run` to a function from the parsed arguments to the exit code.
_COMMANDS = (check, status, drift, export_patch)

# What shells report of a program that this ended: 128 and the number of the signal.
_BROKEN_PIPE = 128 + 13


def build_parser() -> argparse.ArgumentParser:
    """Returns the parser of the whole command line."""
    parser = argparse.ArgumentParser(
        prog="vllm-eagle3",
        description="Tools around the EAGLE-3 draft models of vllm-eagle3.",
        epilog=(
            "Serving needs none of them: with the package installed, the ordinary "
            '`vllm serve ... --speculative-config \'{"method": "eagle3", ...}\'` '
            "uses the fork's model files. Set VLLM_EAGLE3_DISABLE=1 to turn them off."
        ),
    )
    parser.add_argument(
        "--version", action="version", version=f"vllm-eagle3 {__version__}"
    )
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for command in _COMMANDS:
        command.add_parser(commands)
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line and returns the exit code.

    Mistakes that a user can make end in one line on standard error: argparse
    reports wrong options, and a sub-command reports what it finds wrong by a
    ValueError or an OSError. A reader that has seen enough, as ``head``, is none.
    """
    options = build_parser().parse_args(arguments)
    try:
        code = options.run(options)
        if sys.stdout is not None:  # closed, as by `>&-`
            sys.stdout.flush()
        return code
    except BrokenPipeError:
        # At exit Python would flush once more, and complain.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _BROKEN_PIPE
    except (ValueError, OSError) as error:
        print(f"vllm-eagle3: error: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())

# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""The installed command `vllm-eagle3`, as a shell runs it."""

import subprocess
import sys
from pathlib import Path

COMMAND = Path(sys.executable).with_name("vllm-eagle3")


def without_a_reader(*arguments: str) -> tuple[int, str]:
    """Exit code and errors of a command whose output nobody reads."""
    with subprocess.Popen(
        [COMMAND, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        process.stdout.close()
        errors = process.stderr.read()
    return process.returncode, errors

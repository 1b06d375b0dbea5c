#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""Fails on source files that do not say their licence in the first lines."""

import sys
from collections.abc import Sequence
from pathlib import Path

HEADER = (
    "SPDX-License-Identifier: Apache-2.0",
    "SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project",
)
# A script may begin with a line for the shell.
LINES = 3


def lacks_header(path: Path) -> bool:
    """Tells whether ``path`` has content but no header at its top."""
    text = path.read_text(encoding="utf-8")
    top = "\n".join(text.splitlines()[:LINES])
    return bool(text) and not all(line in top for line in HEADER)


def main(names: Sequence[str]) -> int:
    bare = [name for name in names if lacks_header(Path(name))]
    for name in bare:
        print(f"{name}: the first lines must hold: {' / '.join(HEADER)}")
    return 1 if bare else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

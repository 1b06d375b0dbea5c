# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""The commands that the documentation shows, and where.

`python -m tests.docs.shown` prints those that tests/docs/commands.py does not know.
"""

import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
DOCUMENTS = ("*.md", "docs/**/*.md", "examples/**/*.md", "benchmarks/*.md")
_BLOCK = re.compile(r"^```(bash|console)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_HEREDOC = re.compile(r"<<'?(\w+)'?\s*$")
_COMMENT = re.compile(r"(?:^|\s+)#\s.*$")


def documents() -> list[Path]:
    """Returns all documents for people."""
    return sorted({path for pattern in DOCUMENTS for path in ROOT.glob(pattern)})


def commands() -> dict[str, str]:
    """Returns every command on one line, without comments, with a document it is in."""
    found: dict[str, str] = {}
    for path in documents():
        for kind, block in _BLOCK.findall(path.read_text(encoding="utf-8")):
            for command in in_block(kind, block):
                found.setdefault(command, str(path.relative_to(ROOT)))
    return found


def in_block(kind: str, block: str) -> Iterator[str]:
    """Yields the commands of one block.

    Args:
        kind: ``bash``, where all lines are commands, or ``console``, where a command
            follows a dollar sign and output follows a command.
        block: The lines between the fences.
    """
    lines = iter(block.splitlines())
    for line in lines:
        if kind == "console":
            if not line.startswith("$ "):
                continue
            line = line.removeprefix("$ ")
        pieces = [_COMMENT.sub("", line)]
        while not _is_complete(" ".join(pieces)):
            pieces.append(next(lines))
        if end := _HEREDOC.search(pieces[-1]):
            while next(lines) != end[1]:
                pass
        text = " ".join(piece.removesuffix("\\") for piece in pieces)
        if text.strip():
            yield " ".join(text.split())


def _is_complete(text: str) -> bool:
    return not text.endswith("\\") and text.count("'") % 2 == 0


if __name__ == "__main__":
    from tests.docs.commands import KNOWN

    for shown, document in commands().items():
        if shown not in KNOWN:
            print(f"{document}: {shown}")

# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""The sentences in the source that a user may meet, and those that the docs explain.

`python -m tests.check.messages` prints those that docs/messages.md lacks.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
SOURCES = (
    "vllm/model_executor/models/*.py",
    "vllm_eagle3/*.py",
    "vllm_eagle3/check/*.py",
)
DOCUMENT = ROOT / "docs" / "messages.md"
# A gap for what differs from one time to the next.
GAP = "…"
# Facts and help of the command line, which explain themselves; a pattern.
_NO_MESSAGES = {
    "cli.py",
    "command.py",
    "exporters.py",
    "facts.py",
    "kernels.py",
    "native.py",
    "render.py",
    "report.py",
    "status.py",
}
_FEWEST_WORDS = 4


def in_source() -> dict[str, str]:
    """Every message, gaps in place of values, with the file that it is in."""
    found: dict[str, str] = {}
    for pattern in SOURCES:
        for path in sorted(ROOT.glob(pattern)):
            if path.name in _NO_MESSAGES:
                continue
            for message in _messages(ast.parse(path.read_text(encoding="utf-8"))):
                found.setdefault(message, path.name)
    return found


def in_document() -> list[str]:
    """Every message that the document explains: its lines that begin with `> `."""
    blocks = re.findall(
        r"^> (.+(?:\n> .+)*)", DOCUMENT.read_text(encoding="utf-8"), re.M
    )
    return [_normal(block.replace("\n> ", " ")) for block in blocks]


def _messages(tree: ast.AST) -> Iterator[str]:
    """Literals of sentences within functions, but no docstrings."""
    inside: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr):
            inside |= {id(child) for child in ast.walk(node) if _is_docstring(node)}
        elif isinstance(node, ast.JoinedStr):
            inside |= {id(child) for child in ast.walk(node) if child is not node}
    for node in ast.walk(tree):
        if id(node) in inside or not isinstance(node, ast.JoinedStr | ast.Constant):
            continue
        text = _text(node)
        if text is not None and _is_message(text):
            yield _normal(text)


def _is_docstring(node: ast.Expr) -> bool:
    return isinstance(node.value, ast.Constant)


def _text(node: ast.JoinedStr | ast.Constant) -> str | None:
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else None
    return "".join(
        part.value
        if isinstance(part, ast.Constant) and isinstance(part.value, str)
        else GAP
        for part in node.values
    )


def _is_message(text: str) -> bool:
    words = re.findall(r"[A-Za-z']{2,}", text)
    return len(words) >= _FEWEST_WORDS and " " in text


def _normal(text: str) -> str:
    text = re.sub(r"%(?:\.\d+)?[sdrg]", GAP, text)
    return " ".join(text.split())


if __name__ == "__main__":
    explained = set(in_document()) if DOCUMENT.exists() else set()
    for sentence, file in in_source().items():
        if sentence not in explained:
            print(f"{file}: {sentence}")
    for sentence in sorted(explained - in_source().keys()):
        print(f"stale: {sentence}")

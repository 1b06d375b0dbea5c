# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""Docstrings as upstream's linter wants them: an empty line ends the last section."""

import ast
import re
from collections.abc import Iterator

_SECTION = re.compile(r"^\s*(Args|Attributes|Raises|Returns|Yields):$", re.MULTILINE)
_CLOSING = '"""'


def close_sections(text: str) -> str:
    """Adds an empty line to each docstring that has sections and ends without one."""
    lines = text.splitlines()
    for end in sorted(_ends(ast.parse(text)), reverse=True):
        if lines[end].strip() == _CLOSING and lines[end - 1].strip():
            lines.insert(end, "")
    return "\n".join(lines) + "\n"


def _ends(module: ast.Module) -> Iterator[int]:
    """Indices of the lines that close docstrings with sections."""
    for node in ast.walk(module):
        match node:
            case (
                ast.ClassDef(body=[ast.Expr(value=ast.Constant(value=str(said))), *_])
                | ast.FunctionDef(
                    body=[ast.Expr(value=ast.Constant(value=str(said))), *_]
                )
            ) if _SECTION.search(said):
                assert node.body[0].end_lineno is not None
                yield node.body[0].end_lineno - 1

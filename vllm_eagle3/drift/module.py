# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""One file of vLLM, parsed: what is bound in it at module level."""

import ast
import importlib.util
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from pathlib import Path

Function = ast.FunctionDef | ast.AsyncFunctionDef


class Unreadable(ValueError):
    """A file that is no Python, such as one with the marks of a merge in it."""


@dataclass
class Module:
    """One parsed file."""

    name: str
    path: Path
    bound: dict[str, ast.AST] = field(default_factory=dict)
    stars: list[ast.ImportFrom] = field(default_factory=list)

    @cached_property
    def text(self) -> str:
        return self.path.read_text(encoding="utf-8")

    def read(self) -> "Module":
        try:
            body = _parse(self.text).body
        except SyntaxError:
            raise Unreadable(f"{self.path} is no Python that can be read") from None
        for name, node in bindings(body):
            if name == "*" and isinstance(node, ast.ImportFrom):
                self.stars.append(node)
            elif name not in self.bound or is_overload(self.bound[name]):
                self.bound[name] = node
        return self

    def target(self, node: ast.ImportFrom) -> str:
        """Returns the absolute name of the module that an import is from."""
        package = self.name
        if self.path.name != "__init__.py":
            package = package.rpartition(".")[0]
        relative = "." * node.level + (node.module or "")
        return importlib.util.resolve_name(relative, package)


@lru_cache(maxsize=512)
def _parse(text: str) -> ast.Module:
    """Parses a file once: neighbouring versions have most of them in common."""
    return ast.parse(text)


def bindings(body: list[ast.stmt]) -> Iterator[tuple[str, ast.AST]]:
    """Yields what is bound at module level, within if, try and with blocks too."""
    for node in body:
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                yield node.name, node
            case ast.Import() | ast.ImportFrom():
                for alias in node.names:
                    yield alias.asname or alias.name.split(".")[0], node
            case ast.Assign() | ast.AnnAssign():
                for child in ast.walk(node):
                    if isinstance(child, ast.Name) and isinstance(child.ctx, ast.Store):
                        yield child.id, node
            case ast.If() | ast.Try() | ast.With():
                yield from bindings(_blocks(node))


def _blocks(node: ast.If | ast.Try | ast.With) -> list[ast.stmt]:
    blocks = list(node.body)
    if isinstance(node, ast.Try):
        for handler in node.handlers:
            blocks += handler.body
        blocks += node.finalbody
    if not isinstance(node, ast.With):
        blocks += node.orelse
    return blocks


def is_overload(node: ast.AST) -> bool:
    return isinstance(node, Function) and any(
        isinstance(decorator, ast.Name) and decorator.id == "overload"
        for decorator in node.decorator_list
    )

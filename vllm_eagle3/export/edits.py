# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""Edits to files of vLLM, placed by names: classes, methods, variables.

An edit knows what it looks for and what it inserts, and nothing of what stands around
that. Where its place is not found, or is found twice, it changes nothing.
"""

import ast
import textwrap
from dataclasses import dataclass
from typing import TypeVar

_Definition = TypeVar("_Definition", ast.ClassDef, ast.FunctionDef)


class Moved(ValueError):
    """A tree of vLLM lacks what the series rests on."""


@dataclass(frozen=True)
class InsertIntoBranch:
    """Puts a statement first into ``if "value" in variable:`` of a method.

    Attributes:
        path: The file, from the folder that holds ``vllm/``.
        method: ``Class.method``.
        value: A string constant, left of ``in``.
        variable: The name right of it.
        needs: Attributes of ``self`` that ``__init__`` of the class must set.
        statement: What to insert, without indentation.
    """

    path: str
    method: str
    value: str
    variable: str
    needs: tuple[str, ...]
    statement: str

    def apply(self, text: str) -> str:
        """Returns the text with the statement in its place.

        Raises:
            Moved: if the place is not there exactly once.
        """
        body = self._branch(ast.parse(text))
        first = body[0]
        lines = text.splitlines(keepends=True)
        statement = textwrap.indent(self.statement, " " * first.col_offset)
        lines.insert(first.lineno - 1, statement.rstrip("\n") + "\n")
        return "".join(lines)

    def _branch(self, module: ast.Module) -> list[ast.stmt]:
        class_name, _, method_name = self.method.partition(".")
        owner = _only(module.body, ast.ClassDef, class_name, self.path)
        method = _only(owner.body, ast.FunctionDef, method_name, self.path)
        constructor = _only(owner.body, ast.FunctionDef, "__init__", self.path)
        for attribute in self.needs:
            if not _sets(constructor, attribute):
                raise Moved(f"{self.path}: {class_name} sets no {attribute}")
        found = [node for node in ast.walk(method) if self._is_test(node)]
        if len(found) != 1:
            raise Moved(
                f"{self.path}: {self.method} tests `{self._test()}` {len(found)} "
                "times and not once"
            )
        assert isinstance(found[0], ast.If)
        return found[0].body

    def _test(self) -> str:
        return f'"{self.value}" in {self.variable}'

    def _is_test(self, node: ast.AST) -> bool:
        match node:
            case ast.If(
                test=ast.Compare(
                    left=ast.Constant(value=self.value),
                    ops=[ast.In()],
                    comparators=[ast.Name(id=self.variable)],
                )
            ):
                return True
        return False


@dataclass(frozen=True)
class RemoveFunction:
    """Takes a function at the top of a module away, with its decorators.

    Attributes:
        path: The file, from the folder that holds ``vllm/``.
        name: The function.
    """

    path: str
    name: str

    def apply(self, text: str) -> str:
        """Returns the text without the function.

        Raises:
            Moved: if it is not there exactly once.
        """
        function = _only(ast.parse(text).body, ast.FunctionDef, self.name, self.path)
        decorators = function.decorator_list
        first = min([function.lineno, *(node.lineno for node in decorators)])
        lines = text.splitlines(keepends=True)
        before, after = lines[: first - 1], lines[function.end_lineno :]
        while before and not before[-1].strip():
            before.pop()
        return "".join(before + after)


def _only(
    body: list[ast.stmt], kind: type[_Definition], name: str, path: str
) -> _Definition:
    """The one definition of a name."""
    found = [node for node in body if isinstance(node, kind) and node.name == name]
    if len(found) != 1:
        raise Moved(f"{path}: {name} is defined {len(found)} times and not once")
    return found[0]


def _sets(constructor: ast.AST, attribute: str) -> bool:
    return any(
        isinstance(node, ast.Attribute)
        and isinstance(node.ctx, ast.Store)
        and node.attr == attribute
        for node in ast.walk(constructor)
    )

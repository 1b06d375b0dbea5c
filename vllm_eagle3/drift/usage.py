# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""Reads from the fork's source what it uses of vLLM, and how.

Found are: what is imported; attributes of what is imported, of parameters annotated
with it, and of ``self`` in classes that extend it; keyword arguments that a class is
made with; and what is replaced by assignment. Names given as text, and attributes of
attributes, are beyond it: ``rests.py`` adds those that matter.
"""

import ast
import importlib.util
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from vllm_eagle3.drift.module import Function

IMPORTED, CALLED, EXTENDED, PATCHED = "imported", "called", "extended", "patched"


@dataclass(frozen=True, order=True)
class Use:
    """One way in which a file of the fork uses something of vLLM.

    Attributes:
        module: The module that is imported from.
        name: What is imported from it, empty for the module itself.
        member: An attribute of that, or empty.
        how: One of the constants above.
    """

    module: str
    name: str
    member: str
    how: str


@dataclass(frozen=True)
class _Name:
    module: str
    name: str = ""

    def use(self, how: str, member: str = "") -> Use:
        return Use(self.module, self.name, member, how)


def uses(path: Path, package: str) -> set[Use]:
    """Returns what one file of the fork uses of vLLM.

    Args:
        path: The file.
        package: What relative imports in it are relative to.
    """
    parsed = ast.parse(path.read_text(encoding="utf-8"), str(path))
    names: dict[str, _Name] = {}
    found: set[Use] = set()
    for local, name in _imports(parsed, package):
        found.add(name.use(IMPORTED))
        if local:
            names[local] = name
    for node in ast.walk(parsed):
        found |= set(_of_node(node, names))
    return found


def _imports(parsed: ast.Module, package: str) -> Iterator[tuple[str, _Name]]:
    for node in ast.walk(parsed):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.partition(".")[0] == "vllm":
                    yield alias.asname or "", _Name(alias.name)
        elif isinstance(node, ast.ImportFrom):
            relative = "." * node.level + (node.module or "")
            module = importlib.util.resolve_name(relative, package)
            if module.partition(".")[0] == "vllm":
                for alias in node.names:
                    yield alias.asname or alias.name, _Name(module, alias.name)


def _of_node(node: ast.AST, names: dict[str, _Name]) -> Iterator[Use]:
    match node:
        case ast.Attribute(value=ast.Name(id=local), attr=attribute) if local in names:
            patched = isinstance(node.ctx, ast.Store)
            yield names[local].use(PATCHED if patched else IMPORTED, attribute)
        case ast.Subscript(value=ast.Name(id=local), ctx=ast.Store()) if local in names:
            yield names[local].use(PATCHED)
        case ast.Call(func=ast.Name(id=local)) if local in names:
            yield names[local].use(CALLED)
            for keyword in node.keywords:
                if keyword.arg:
                    yield names[local].use(IMPORTED, keyword.arg)
        case ast.Call(func=ast.Name(id="setattr"), args=[ast.Name(id=local), *rest]):
            if local in names and isinstance(rest[0], ast.Constant):
                yield names[local].use(PATCHED, str(rest[0].value))
        case ast.ClassDef():
            for base in node.bases:
                if isinstance(base, ast.Name) and base.id in names:
                    yield from _of_subclass(node, names[base.id])
        case ast.FunctionDef() | ast.AsyncFunctionDef():
            yield from _of_parameters(node, names)


def _of_subclass(node: ast.ClassDef, base: _Name) -> Iterator[Use]:
    yield base.use(EXTENDED)
    for statement in node.body:
        if isinstance(statement, Function):
            yield base.use(IMPORTED, statement.name)
    for child in ast.walk(node):
        match child:
            case (
                ast.Attribute(value=ast.Name(id="self"), attr=attribute)
                | ast.Attribute(
                    value=ast.Call(func=ast.Name(id="super")), attr=attribute
                )
            ):
                yield base.use(IMPORTED, attribute)


def _of_parameters(node: Function, names: dict[str, _Name]) -> Iterator[Use]:
    arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
    typed = {
        argument.arg: names[hint.id]
        for argument in arguments
        for hint in ast.walk(argument.annotation or ast.Constant(None))
        if isinstance(hint, ast.Name) and hint.id in names
    }
    for child in ast.walk(node):
        match child:
            case ast.Attribute(value=ast.Name(id=local), attr=attribute) if (
                local in typed
            ):
                yield typed[local].use(IMPORTED, attribute)

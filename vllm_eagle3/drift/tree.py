# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""Reads a tree of vLLM as source: where a name is defined, and what is in a class."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from vllm_eagle3.drift.module import Function, Module, bindings, is_overload


@dataclass(frozen=True)
class Definition:
    """What a name stands for.

    Attributes:
        module: The module that defines it.
        name: What it is called there, with its class in front if it has one.
        node: Its source, or None where there is none to read: a module, a compiled
            one, something of another package, or made by a module's ``__getattr__``.
        inside: A name that is bound only in methods, as an attribute of ``self``.
    """

    module: str
    name: str
    node: ast.AST | None = None
    inside: bool = False


class Tree:
    """A folder that holds the package ``vllm``, installed or checked out.

    Args:
        package: The folder ``vllm`` itself.
    """

    def __init__(self, package: Path) -> None:
        self.package = package
        self._modules: dict[str, Module | None] = {}

    def path(self, module: str) -> Path | None:
        """Returns the file of a module, compiled ones included, or None."""
        base = self.package.joinpath(*module.split(".")[1:])
        for candidate in (base / "__init__.py", base.with_name(base.name + ".py")):
            if candidate.is_file():
                return candidate
        return next(iter(sorted(base.parent.glob(f"{base.name}.*so"))), None)

    def module(self, name: str) -> Module | None:
        """Returns a module of the tree, or None if it has no source file."""
        if name not in self._modules:
            path = self.path(name)
            read = Module(name, path).read() if path and path.suffix == ".py" else None
            self._modules[name] = read
        return self._modules[name]

    def find(self, module: str, name: str | None = None) -> Definition | None:
        """Finds what a name of a module stands for, through imports if need be."""
        return self._find(module, name, frozenset())

    def _find(
        self, module: str, name: str | None, seen: frozenset[tuple[str, str]]
    ) -> Definition | None:
        if module.partition(".")[0] != "vllm":
            return Definition(module, name or "")
        if name is None:
            return Definition(module, "") if self.path(module) else None
        source = self.module(module)
        if (module, name) in seen or source is None:
            return Definition(module, name) if self.path(module) else None
        seen |= {(module, name)}
        node = source.bound.get(name)
        if isinstance(node, ast.ImportFrom):
            return self._follow(source, node, name, seen)
        if isinstance(node, ast.Import):
            return self._find(_imported(node, name), None, seen)
        if node is not None:
            return Definition(module, name, node)
        return self._find_unbound(source, name, seen)

    def _follow(
        self,
        source: Module,
        node: ast.ImportFrom,
        name: str,
        seen: frozenset[tuple[str, str]],
    ) -> Definition | None:
        original = next(
            alias.name for alias in node.names if (alias.asname or alias.name) == name
        )
        return self._find(source.target(node), original, seen)

    def _find_unbound(
        self, source: Module, name: str, seen: frozenset[tuple[str, str]]
    ) -> Definition | None:
        for star in source.stars:
            target = source.target(star)
            if target.partition(".")[0] == "vllm":
                found = self._find(target, name, seen)
                if found is not None and found.node is not None:
                    return found
        if self.path(f"{source.name}.{name}"):
            return Definition(f"{source.name}.{name}", "")
        if "__getattr__" in source.bound:
            return Definition(source.name, name)
        return None

    def functions(self, module: str) -> Iterator[str]:
        """Yields the functions and methods that a module defines."""
        source = self.module(module)
        for name, node in source.bound.items() if source else ():
            if isinstance(node, Function):
                yield name
            elif isinstance(node, ast.ClassDef):
                for child in node.body:
                    if isinstance(child, Function):
                        yield f"{name}.{child.name}"

    def member(self, owner: Definition, name: str) -> Definition | None:
        """Finds an attribute of a class, of an instance of one, or of a module.

        Looks into base classes that are in the tree. None means that it is not
        there, or that a class of another package may have it.
        """
        if owner.node is None:
            return self.find(owner.module, name) if not owner.name else None
        if isinstance(owner.node, ast.Assign | ast.AnnAssign):
            made_by = self._class_of_call(owner)
            return self.member(made_by, name) if made_by else None
        if not isinstance(owner.node, ast.ClassDef):
            return None
        own = _class_member(owner.node, name)
        if own is not None:
            node, inside = own
            return Definition(owner.module, f"{owner.name}.{name}", node, inside)
        for base in owner.node.bases:
            found = self._resolve(owner.module, base)
            inherited = self.member(found, name) if found else None
            if inherited is not None:
                return inherited
        return None

    def _class_of_call(self, owner: Definition) -> Definition | None:
        assert isinstance(owner.node, ast.Assign | ast.AnnAssign)
        value = owner.node.value
        if isinstance(value, ast.Call):
            return self._resolve(owner.module, value.func)
        return None

    def _resolve(self, module: str, expression: ast.expr) -> Definition | None:
        if isinstance(expression, ast.Name):
            return self.find(module, expression.id)
        if isinstance(expression, ast.Subscript):  # Generic[T]
            return self._resolve(module, expression.value)
        if isinstance(expression, ast.Attribute):
            owner = self._resolve(module, expression.value)
            return self.member(owner, expression.attr) if owner else None
        return None


def _imported(node: ast.Import, name: str) -> str:
    """Returns the module that ``import a.b`` or ``import a.b as c`` binds to a name."""
    for alias in node.names:
        if alias.asname == name:
            return alias.name
    return name


def _class_member(node: ast.ClassDef, name: str) -> tuple[ast.AST, bool] | None:
    found: ast.AST | None = None
    for bound, statement in bindings(node.body):
        if bound == name and (found is None or is_overload(found)):
            found = statement
    if found is not None:
        return found, False
    for child in ast.walk(node):
        if (
            isinstance(child, ast.Attribute)
            and child.attr == name
            and isinstance(child.ctx, ast.Store)
            and isinstance(child.value, ast.Name)
            and child.value.id == "self"
        ):
            return child, True
    return None

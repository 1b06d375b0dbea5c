# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""What is compared of a definition: its kind, how it is called, and a hash of its body.

Facts are short strings in a form of our own, the same under every Python: kind, names
of parameters and their defaults. Annotations and comments may change freely.
"""

import ast
import hashlib
from pathlib import Path

from vllm_eagle3.drift.module import Function
from vllm_eagle3.drift.tree import Definition, Tree

GENERATED = "generated"  # the constructor that a dataclass gets


def fact(tree: Tree, found: Definition, called: bool) -> str:
    """Describes a definition in one line.

    Args:
        tree: Where it was found.
        found: The definition.
        called: Whether the fork calls or extends it, so that a class's constructor
            is part of the fact.
    """
    node = found.node
    if isinstance(node, Function):
        return _kind_of_function(node) + _parameters(node)
    if isinstance(node, ast.ClassDef):
        return "class" + (_constructor(tree, found) if called else "")
    if node is not None:
        return "attribute" if found.inside or "." in found.name else "value"
    return "module" if not found.name else "name"


def _kind_of_function(node: Function) -> str:
    kinds = {"property", "cached_property", "staticmethod", "classmethod"}
    names = [
        decorator.id
        for decorator in node.decorator_list
        if isinstance(decorator, ast.Name)
    ]
    kind = next((name for name in names if name in kinds), "function")
    return "async " + kind if isinstance(node, ast.AsyncFunctionDef) else kind


def _parameters(node: Function) -> str:
    """Returns the parameters with their defaults and without annotations."""
    return f"({', '.join(_each_parameter(node.args))})"


def _each_parameter(arguments: ast.arguments) -> list[str]:
    positional = [*arguments.posonlyargs, *arguments.args]
    missing = len(positional) - len(arguments.defaults)
    defaults: list[ast.expr | None] = [None] * missing + list(arguments.defaults)
    shown = [_parameter(*pair) for pair in zip(positional, defaults, strict=True)]
    if arguments.posonlyargs:
        shown.insert(len(arguments.posonlyargs), "/")
    if arguments.vararg:
        shown.append(f"*{arguments.vararg.arg}")
    elif arguments.kwonlyargs:
        shown.append("*")
    keyword = zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
    shown += [_parameter(*pair) for pair in keyword]
    if arguments.kwarg:
        shown.append(f"**{arguments.kwarg.arg}")
    return shown


def _parameter(argument: ast.arg, default: ast.expr | None) -> str:
    return argument.arg + (f"={ast.unparse(default)}" if default is not None else "")


def parameters_of(text: str) -> dict[str, str]:
    """Reads the text of a fact's parameters: each with its default, or empty."""
    arguments = ast.parse(f"def f({text}): ...").body[0]
    assert isinstance(arguments, Function)
    each = (shown.partition("=") for shown in _each_parameter(arguments.args))
    return {name: default for name, _, default in each if name not in "*/"}


def _constructor(tree: Tree, owner: Definition) -> str:
    found = tree.member(owner, "__init__")
    if found is None or not isinstance(found.node, Function):
        return ""
    return _parameters(found.node)


def body_hash(tree: Tree, found: Definition) -> str:
    """Hashes the source of a function or class: no comments, docstrings or spacing."""
    module = tree.module(found.module)
    if module is None or found.node is None:
        return ""
    node = found.node
    assert isinstance(node, ast.stmt)
    skipped = {line for child in ast.walk(node) for line in _docstring_lines(child)}
    lines = module.text.splitlines()
    kept = (
        "".join(lines[number - 1].split())
        for number in range(node.lineno, (node.end_lineno or node.lineno) + 1)
        if number not in skipped
    )
    text = "\n".join(line for line in kept if line and not line.startswith("#"))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _docstring_lines(node: ast.AST) -> range:
    if not isinstance(node, ast.ClassDef | Function):
        return range(0)
    first = node.body[0]
    if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
        return range(first.lineno, (first.end_lineno or first.lineno) + 1)
    return range(0)


def file_hash(path: Path) -> str:
    """Hashes a whole file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()

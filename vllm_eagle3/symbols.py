# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""Checks that vLLM still has every name that the fork imports from it.

The names are read from the fork's own source, so the list cannot fall behind
the code. vLLM's side is read as source too, and never imported: the plugin runs
in the API server, where importing model code would cost seconds and memory and
might touch the GPU before vLLM forks. Parsing costs about a tenth of a second.
"""

import ast
import importlib.machinery
import importlib.util
import sys
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

from vllm_eagle3 import subtree


def needed_symbols(folder: Path, package: str) -> set[tuple[str, str | None]]:
    """Returns the ``(module, name)`` pairs that ``folder`` imports from vLLM.

    Args:
        folder: Holds the modules of ``package``.
        package: What relative imports in these modules are relative to.

    Returns:
        The pairs; the name is None for a plain ``import vllm.module``.
    """
    needed: set[tuple[str, str | None]] = set()
    for path in folder.glob("*.py"):
        for node in ast.walk(_parse(path)):
            if isinstance(node, ast.Import):
                needed |= {(alias.name, None) for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                module = "." * node.level + (node.module or "")
                module = importlib.util.resolve_name(module, package)
                needed |= {(module, alias.name) for alias in node.names}
    return {pair for pair in needed if pair[0].partition(".")[0] == "vllm"}


def missing_symbols(
    needed: Iterable[tuple[str, str | None]], own_folder: Path | None = None
) -> list[str]:
    """Returns those of ``needed`` that this vLLM lacks, as ``module:name``.

    Args:
        needed: What ``needed_symbols`` returned.
        own_folder: The fork's model folder; modules in it are looked up there
            first, as they will be once the overlay is active.
    """
    return sorted(
        f"{module}:{name}" if name else module
        for module, name in needed
        if not _provides(module, name, own_folder)
    )


def _provides(module: str, name: str | None, own_folder: Path | None) -> bool:
    path = _source(module, own_folder)
    if path is None:
        return False
    if name is None or path.suffix != ".py":
        # A compiled module cannot be read; its existence has to do.
        return True
    names = _bound_names(path)
    return (
        name in names
        or "__getattr__" in names
        or _source(f"{module}.{name}", own_folder) is not None
    )


def _source(module: str, own_folder: Path | None) -> Path | None:
    """Finds the file of a vLLM module without importing it or its parents."""
    package, _, last = module.rpartition(".")
    if own_folder is not None and package == subtree.PACKAGE:
        own = own_folder / f"{last}.py"
        if own.exists():
            return own
    folders = _vllm_folders()
    spec = None
    for part in module.split(".")[1:]:
        spec = importlib.machinery.PathFinder.find_spec(part, folders)
        if spec is None:
            return None
        folders = list(spec.submodule_search_locations or ())
    if spec is None:
        return Path(folders[0]) / "__init__.py"
    return Path(spec.origin) if spec.origin else None


def _vllm_folders() -> list[str]:
    if "vllm" in sys.modules:
        return list(sys.modules["vllm"].__path__)
    spec = importlib.util.find_spec("vllm")
    return list(spec.submodule_search_locations or ()) if spec else []


def _parse(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), filename=str(path))


@cache
def _bound_names(path: Path) -> frozenset[str]:
    return frozenset(_bindings(_parse(path).body))


def _bindings(body: Iterable[ast.AST]) -> Iterator[str]:
    """Yields the names bound at module level, within if and try blocks too."""
    for node in body:
        match node:
            case (
                ast.FunctionDef(name=name)
                | ast.AsyncFunctionDef(name=name)
                | ast.ClassDef(name=name)
            ):
                yield name
            case ast.Import(names=aliases) | ast.ImportFrom(names=aliases):
                for alias in aliases:
                    yield alias.asname or alias.name.split(".")[0]
            case ast.Assign() | ast.AnnAssign():
                for child in ast.walk(node):
                    if isinstance(child, ast.Name) and isinstance(child.ctx, ast.Store):
                        yield child.id
            case _:
                yield from _bindings(
                    child
                    for child in ast.iter_child_nodes(node)
                    if isinstance(child, (ast.stmt, ast.excepthandler))
                )

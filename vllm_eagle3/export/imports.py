# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""Imports in upstream's groups.

Here vLLM is a library like any other; in its own repository it is what the file belongs
to, and stands in a group between the libraries and the neighbours.
"""

import ast

_OWN = "vllm"


def regroup(text: str) -> str:
    """Groups the imports at the top of a module as vLLM's linter wants them.

    Each group keeps its order, which the fork's linter has made, but for neighbours:
    these are one group here and may have been two.
    """
    imports = _at_the_top(ast.parse(text))
    if not imports:
        return text
    lines = text.splitlines()
    groups: dict[int, list[tuple[str, str]]] = {}
    before = 0
    for node in imports:
        first, last = node.lineno - 1, node.end_lineno or node.lineno
        # A blank line parts the standard library from the others.
        apart = [""] if before and not lines[first - 1].strip() else []
        rank = _rank(node)
        piece = "\n".join([*(apart if rank == 0 else []), *lines[first:last]])
        groups.setdefault(rank, []).append((_module(node), piece))
        before = last
    groups.get(2, []).sort(key=lambda pair: pair[0])
    blocks = ["\n".join(p for _, p in groups[rank]) for rank in sorted(groups)]
    head, tail = lines[: imports[0].lineno - 1], lines[before:]
    return "\n".join([*head, "\n\n".join(blocks).strip("\n"), *tail]) + "\n"


def imported(node: ast.Import | ast.ImportFrom) -> list[str]:
    """The modules that a statement names; of a neighbour, the empty name."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    return [""] if node.level else [node.module or ""]


def without_unused(text: str) -> str:
    """Drops imports at the top whose every name occurs nowhere else."""
    module = ast.parse(text)
    used = {node.id for node in ast.walk(module) if isinstance(node, ast.Name)}
    lines = text.splitlines()
    for node in reversed(_at_the_top(module)):
        bound = {(a.asname or a.name).partition(".")[0] for a in node.names}
        if bound.isdisjoint(used):
            del lines[node.lineno - 1 : node.end_lineno]
    return regroup("\n".join(lines) + "\n")


def _at_the_top(module: ast.Module) -> list[ast.Import | ast.ImportFrom]:
    """The imports before anything else but the docstring."""
    found: list[ast.Import | ast.ImportFrom] = []
    for node in module.body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            found.append(node)
        elif not (isinstance(node, ast.Expr) and not found):
            break
    return found


def _module(node: ast.Import | ast.ImportFrom) -> str:
    return "" if isinstance(node, ast.Import) else node.module or ""


def _rank(node: ast.Import | ast.ImportFrom) -> int:
    if isinstance(node, ast.ImportFrom) and node.level:
        return 2
    return int(imported(node)[0].partition(".")[0] == _OWN)

# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""The fork's own files, at upstream's paths and in upstream's form."""

import ast
import re
from collections.abc import Container
from dataclasses import dataclass
from pathlib import Path

from vllm_eagle3 import subtree
from vllm_eagle3.export.docstrings import close_sections
from vllm_eagle3.export.imports import imported, regroup

MODELS = "vllm/model_executor/models"
# Upstream keeps tests of one model in one folder; so does all that comes from here.
TESTS = "tests/model_executor/eagle3"

_HEADER = "# SPDX-"
_CONTRACT = "draft_vocabulary"
_STAYING_PACKAGES = frozenset({"vllm_eagle3", "tests"})


@dataclass(frozen=True)
class _Lift:
    """A test helper of which a part travels, as a module of its own.

    Attributes:
        module: Where it stands, as tests import it.
        name: Of the new module, beside the tests.
        parts: Functions and constants at the top of ``module``.
        purpose: The docstring of the new module.
    """

    module: str
    name: str
    parts: tuple[str, ...]
    purpose: str


_LIFTED = (
    _Lift(
        "vllm_eagle3.check.runtime",
        "one_rank",
        ("one_rank", "_process_group"),
        "One rank, for tests that load a draft without an engine.",
    ),
    _Lift(
        "tests.support.stock",
        "ready_models",
        ("CLASSES", "build", "make_ready"),
        "Building a draft class from tensors in memory, as vLLM's loader does.",
    ),
)


class Sources:
    """The files of the fork that a series is made from.

    Args:
        header: Upstream's first lines of every file, SPDX, with their line ends.

    Raises:
        ValueError: if the fork is installed without its tests.
    """

    def __init__(self, header: str) -> None:
        self._header = header
        self._models = subtree.models_folder()
        self._repository = self._models.parents[2]
        self._tests = self._repository / "tests"
        if not (self._tests / "model_executor").is_dir():
            raise ValueError(
                "this is an installed vllm-eagle3, which comes without its tests, and "
                "they are part of the series; run the command from a clone of the "
                "repository"
            )

    def contract(self) -> dict[str, str]:
        """The contract's modules: path to text."""
        return self._modules(contract=True)

    def families(self) -> dict[str, str]:
        """All other model files."""
        return self._modules(contract=False)

    def test_names(self, folder: str, without: Container[str]) -> list[str]:
        """The test files in a folder of ``tests/`` that can do without the fork.

        Returns:
            Their names as `tests` takes them.
        """
        found = sorted((self._tests / folder).glob("test_*.py"))
        return [
            name
            for path in found
            if (name := f"{folder}/{path.stem}") not in without
            and not _needs_fork(_rewire(path.read_text("utf-8")))
        ]

    def tests(self, *names: str) -> dict[str, str]:
        """Test files, named from ``tests/`` and without suffix; each must exist."""
        files = {}
        for name in names:
            path = self._tests / f"{name}.py"
            text = self._as_upstream(path)
            target = _TEST_NAMES.get(name, path.stem)
            files[f"{TESTS}/{target}.py"] = _styled(_rewire(text))
        return files

    def lifted(self, name: str) -> dict[str, str]:
        """The part of a helper that travels, by the name of its new module."""
        (lift,) = (lift for lift in _LIFTED if lift.name == name)
        path = self._repository / f"{lift.module.replace('.', '/')}.py"
        text = _excerpt(path.read_text("utf-8"), lift)
        return {f"{TESTS}/{name}.py": self._header + _styled(_rewire(text))}

    def empty(self, name: str) -> dict[str, str]:
        """A file of the header alone."""
        return {f"{TESTS}/{name}.py": self._header}

    def _modules(self, *, contract: bool) -> dict[str, str]:
        return {
            f"{MODELS}/{path.name}": _styled(self._as_upstream(path))
            for path in sorted(self._models.glob("*.py"))
            if path.name.startswith(_CONTRACT) == contract
        }

    def _as_upstream(self, path: Path) -> str:
        lines = path.read_text("utf-8").splitlines(keepends=True)
        while lines and lines[0].startswith(_HEADER):
            del lines[0]
        return self._header + "".join(lines)


_TEST_NAMES = {
    # Upstream has a file of this name, of other tests.
    "model_executor/test_eagle_quantization": "test_draft_id_to_target_id",
}


def _styled(text: str) -> str:
    return close_sections(regroup(text))


def _rewire(text: str) -> str:
    """Lets a test import its helpers from the one folder that all of them go to."""
    for lift in _LIFTED:
        text = text.replace(f"from {lift.module} import", f"from .{lift.name} import")
    return re.sub(r"^from tests\.support\.", "from .", text, flags=re.MULTILINE)


def _needs_fork(text: str) -> bool:
    """Whether a rewired test still imports what does not travel."""
    modules = {
        name.partition(".")[0]
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in imported(node)
    }
    return not modules.isdisjoint(_STAYING_PACKAGES)


def _excerpt(text: str, lift: _Lift) -> str:
    """Some definitions of a module, and the imports that they need."""
    module = ast.parse(text)
    wanted = [node for node in module.body if _defines(node) in lift.parts]
    if len(wanted) != len(lift.parts):
        raise ValueError(f"{lift.module} does not define each of {lift.parts}")
    names = {n.id for w in wanted for n in ast.walk(w) if isinstance(n, ast.Name)}
    imports = _imports(module, names)
    bodies = [_with_decorators(text, node) for node in wanted]
    head = "\n".join([f'"""{lift.purpose}"""', "", *imports]).rstrip()
    gap = "\n\n" if isinstance(wanted[0], ast.Assign) else "\n\n\n"
    return head + gap + "\n\n\n".join(bodies) + "\n"


def _defines(node: ast.stmt) -> str | None:
    match node:
        case ast.FunctionDef(name=name) | ast.Assign(targets=[ast.Name(id=name)]):
            return name
    return None


def _imports(module: ast.Module, names: set[str]) -> list[str]:
    """Lines that import ``names`` as ``module`` does, in the same groups."""
    lines: list[str] = []
    end_of_last = 0
    for node in module.body:
        if not isinstance(node, ast.Import | ast.ImportFrom):
            continue
        used = [a for a in node.names if (a.asname or a.name.split(".")[0]) in names]
        if node.lineno > end_of_last + 1 and lines and lines[-1]:
            lines.append("")
        if used:
            lines.append(ast.unparse(type(node)(**{**vars(node), "names": used})))
        assert node.end_lineno is not None
        end_of_last = node.end_lineno
    return lines


def _with_decorators(text: str, node: ast.stmt) -> str:
    decorators = getattr(node, "decorator_list", [])
    first = min([node.lineno, *(decorator.lineno for decorator in decorators)])
    return "\n".join(text.splitlines()[first - 1 : node.end_lineno])

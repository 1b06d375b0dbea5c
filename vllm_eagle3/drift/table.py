# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""The table of what the fork rests on: its entries, its file, and deriving it."""

import json
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from vllm_eagle3 import subtree
from vllm_eagle3.drift import facts, rests, usage
from vllm_eagle3.drift.module import Function
from vllm_eagle3.drift.tree import Definition, Tree
from vllm_eagle3.versions import listed

FILE = Path(__file__).with_name("table.json")
ABSENT = "absent"  # the fact of what one of the supported versions does not have


@dataclass(frozen=True)
class Entry:
    """One thing that the fork rests on.

    Attributes:
        name: ``module:name.member``, ``module:``, or the path of a file.
        facts: What it may be: one for each way that a supported version has it.
        bodies: Hashes that its source may have; empty where only the fact counts.
        called: Whether the constructor of a class is part of its fact.
        files: Our files that use it, as paths in the repository.
        why: What it is for, where the use itself does not say so.
    """

    name: str
    facts: tuple[str, ...]
    bodies: tuple[str, ...] = ()
    called: bool = False
    files: tuple[str, ...] = ()
    why: str = ""

    @property
    def is_file(self) -> bool:
        return ":" not in self.name


@dataclass(frozen=True)
class Table:
    """All entries, and the versions of vLLM that they were derived from."""

    versions: tuple[str, ...]
    entries: tuple[Entry, ...]

    def save(self, path: Path = FILE) -> None:
        """Writes the table with one entry a line, so that changes can be reviewed."""
        lines = ",\n".join(json.dumps(asdict(entry)) for entry in self.entries)
        versions = json.dumps(self.versions)
        path.write_text(f'{{"versions": {versions},\n"entries": [\n{lines}\n]}}\n')

    @classmethod
    def load(cls, path: Path = FILE) -> "Table":
        read = json.loads(path.read_text("utf-8"))
        entries = tuple(Entry(**_tuples(entry)) for entry in read["entries"])
        return cls(tuple(read["versions"]), entries)


def _tuples(entry: dict) -> dict:
    return {k: tuple(v) if isinstance(v, list) else v for k, v in entry.items()}


@dataclass
class _Need:
    """What the fork's files make of one name, before a tree is looked at."""

    called: bool = False
    body: bool = False
    surely: bool = False  # imported by name, or in rests.py: not having it is an error
    why: str = ""


def find(tree: Tree, name: str) -> Definition | None:
    """Finds what an entry's name stands for in a tree."""
    module, _, rest = name.partition(":")
    first, _, member = rest.partition(".")
    found = tree.find(module, first or None)
    return tree.member(found, member) if found and member else found


def needs() -> tuple[dict[str, _Need], dict[str, set[str]]]:
    """Reads from the fork's source what it needs, and which file needs it."""
    needed: dict[str, _Need] = defaultdict(_Need)
    files: dict[str, set[str]] = defaultdict(set)
    for path, name, package in own_files():
        for use in usage.uses(path, package):
            if is_own(use.module, use.name):
                continue
            key = f"{use.module}:{use.name}" + (f".{use.member}" if use.member else "")
            need = needed[key]
            need.called |= use.how in (usage.CALLED, usage.EXTENDED)
            need.body |= use.how == usage.PATCHED
            need.surely |= not use.member
            files[key].add(name)
    for rest in (*rests.BEHAVIOUR, *rests.NAMES):
        need = needed[rest.name]
        need.body |= rest in rests.BEHAVIOUR
        need.surely, need.why = True, rest.why
        files[rest.name].add(rest.file)
    return needed, files


def own_files() -> Iterator[tuple[Path, str, str]]:
    """Yields the fork's files: path, name in the repository, and package."""
    models = subtree.models_folder()
    for path in sorted(models.glob("*.py")):
        yield path, f"{rests.MODELS}/{path.name}", subtree.PACKAGE
    package = Path(subtree.__file__).parent
    for path in sorted(package.rglob("*.py")):
        if not path.is_relative_to(models):
            relative = path.relative_to(package.parent)
            yield path, relative.as_posix(), ".".join(relative.parent.parts)


def is_own(module: str, name: str) -> bool:
    """Tells whether what is imported is the fork's, once the overlay is active."""
    own = subtree.module_names(subtree.models_folder())
    if module == subtree.PACKAGE:
        return name in own
    package, _, last = module.rpartition(".")
    return package == subtree.PACKAGE and last in own


def derive(trees: dict[str, Tree]) -> Table:
    """Makes the table from the fork's source and the trees of supported versions.

    Raises:
        ValueError: the fork imports something that one of the trees lacks.
    """
    needed, files = needs()
    entries = []
    for name, need in needed.items():
        entry = _entry(name, need, files[name], trees)
        if entry is not None:
            entries.append(entry)
    entries += _files(list(trees.values()))
    entries.sort(key=lambda entry: entry.name)
    return Table(tuple(trees), tuple(entries))


def _entry(
    name: str, need: _Need, files: set[str], trees: dict[str, Tree]
) -> Entry | None:
    found = {version: find(tree, name) for version, tree in trees.items()}
    missing = [version for version, definition in found.items() if definition is None]
    if need.surely and missing:
        raise ValueError(
            f"vLLM {listed(missing)} has no {name}, which "
            f"{', '.join(sorted(files))} needs"
        )
    if len(missing) == len(found):
        return None  # inherited from torch or transformers, or an attribute of ours
    stated, bodies = [], []
    for version, definition in found.items():
        tree = trees[version]
        stated.append(
            facts.fact(tree, definition, need.called) if definition else ABSENT
        )
        if need.body and definition and isinstance(definition.node, Function):
            bodies.append(facts.body_hash(tree, definition))
    return Entry(
        name,
        tuple(dict.fromkeys(stated)),
        tuple(dict.fromkeys(bodies)),
        need.called,
        tuple(sorted(files)),
        need.why,
    )


def _files(trees: list[Tree]) -> list[Entry]:
    """Makes the entries of whole files, and of each function in the replaced ones."""
    entries = []
    for rest in (*rests.REPLACED, *rests.REFERENCES):
        hashes = [facts.file_hash(tree.package / rest.name) for tree in trees]
        bodies = tuple(dict.fromkeys(hashes))
        entries.append(
            Entry(rest.name, ("file",), bodies, False, (rest.file,), rest.why)
        )
    numbered = {str(number): tree for number, tree in enumerate(trees)}
    for rest in rests.REPLACED:
        module = f"{subtree.PACKAGE}.{Path(rest.name).stem}"
        names: dict[str, None] = {}
        for tree in trees:
            names |= dict.fromkeys(tree.functions(module))
        for name in names:
            need = _Need(body=True, why=rest.why)
            entry = _entry(f"{module}:{name}", need, {rest.file}, numbered)
            if entry is not None:
                entries.append(entry)
    return entries

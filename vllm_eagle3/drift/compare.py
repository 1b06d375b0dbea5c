# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""Compares a tree of vLLM with the table, and says what has moved."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from vllm_eagle3.drift import facts
from vllm_eagle3.drift.table import ABSENT, Entry, Table, find
from vllm_eagle3.drift.tree import Tree

GONE, KIND, SIGNATURE, BODY, FILE = "gone", "kind", "signature", "body", "file"


@dataclass(frozen=True)
class Finding:
    """Something that is not as the fork expects it.

    Attributes:
        name: As in the table: ``module:name.member``, or a file's path.
        change: One of the constants above.
        what: A sentence that says what is different.
        files: Our files that it touches.
        why: What they rest on there, where the table says so.
    """

    name: str
    change: str
    what: str
    files: tuple[str, ...]
    why: str = ""


def compare(package: Path, table: Table | None = None) -> list[Finding]:
    """Says what the fork rests on and this tree does not have, or has otherwise.

    Args:
        package: The folder ``vllm`` of an installation or a checkout. It is read as
            source and never imported.
        table: What to compare with, by default the fork's own table.

    Returns:
        The findings, by name; none for the versions that the fork supports.
    """
    tree = Tree(package)
    entries = (table or Table.load()).entries
    found = (_look_at(tree, entry) for entry in entries)
    return _without_repetition([finding for finding in found if finding])


def _look_at(tree: Tree, entry: Entry) -> Finding | None:
    if entry.is_file:
        return _look_at_file(tree, entry)
    definition = find(tree, entry.name)
    if definition is None:
        if ABSENT in entry.facts:
            return None
        return _finding(entry, GONE, _gone(tree, entry.name))
    fact = facts.fact(tree, definition, entry.called)
    if fact not in entry.facts:
        known = [fact for fact in entry.facts if fact != ABSENT]
        return _finding(entry, *_difference(known, fact))
    if entry.bodies and facts.body_hash(tree, definition) not in entry.bodies:
        return _finding(entry, BODY, "is called as before and does something else")
    return None


def _difference(known: list[str], fact: str) -> tuple[str, str]:
    """Says how a fact differs from the nearest of the known ones."""
    kind, _, now = fact.partition("(")
    same_kind = [one for one in known if one.partition("(")[0] == kind]
    if not same_kind:
        kinds = " or ".join(dict.fromkeys(one.partition("(")[0] for one in known))
        return KIND, f"was a {kinds}, is a {kind}"
    differences = (_parameters(one.partition("(")[2], now) for one in same_kind)
    return SIGNATURE, min(differences, key=len)


def _parameters(was: str, now: str) -> str:
    before, after = (facts.parameters_of(text.removesuffix(")")) for text in (was, now))
    said = [f"{name} is new" for name in after if name not in before]
    said += [f"{name} is gone" for name in before if name not in after]
    said += [
        f"{name} was {before[name] or 'required'}, is {after[name] or 'required'}"
        for name in after
        if name in before and before[name] != after[name]
    ]
    return "parameters: " + (", ".join(said) or "their order has changed")


def _finding(entry: Entry, change: str, what: str) -> Finding:
    return Finding(entry.name, change, what, entry.files, entry.why)


def _look_at_file(tree: Tree, entry: Entry) -> Finding | None:
    path = tree.package / entry.name
    if not path.is_file():
        return _finding(entry, GONE, "the file is gone")
    if facts.file_hash(path) not in entry.bodies:
        return _finding(entry, FILE, "the file has changed")
    return None


def _gone(tree: Tree, name: str) -> str:
    module, _, rest = name.partition(":")
    if tree.path(module) is None:
        return f"there is no module {module}"
    first, _, member = rest.partition(".")
    if member and tree.find(module, first):
        return f"{first} has no {member}"
    places = ", ".join(sorted(_places(tree, first)))
    return f"{module} has no {first}" + (f"; one is in {places}" if places else "")


def _places(tree: Tree, name: str) -> Iterator[str]:
    """Finds the modules that define a class or function of this name."""
    words = ("class", "def", "async def")
    heads = tuple(f"{word} {name}{end}" for word in words for end in "(:")
    for path in tree.package.rglob("*.py"):
        text = path.read_text("utf-8", errors="replace")
        if any(text.startswith(head) or f"\n{head}" in text for head in heads):
            relative = path.relative_to(tree.package).with_suffix("")
            parts = [part for part in relative.parts if part != "__init__"]
            yield ".".join(("vllm", *parts))


def _without_repetition(findings: list[Finding]) -> list[Finding]:
    """Drops what follows from another finding.

    These are the members of a name that is gone, and the hash of a file of which it
    is known which functions changed.
    """
    gone = {finding.name for finding in findings if finding.change == GONE}
    modules = {finding.name.partition(":")[0] for finding in findings}

    def follows(finding: Finding) -> bool:
        if finding.change == FILE:
            path = finding.name.removesuffix(".py")
            return f"vllm/{path}".replace("/", ".") in modules
        owner, dot, _ = finding.name.rpartition(".")
        return bool(dot) and owner in gone

    return [finding for finding in findings if not follows(finding)]

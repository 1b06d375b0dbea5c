# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""Recorded cases as tables in Markdown."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from tests.layouts.drafts import DRAFTS
from tests.layouts.small import FAMILIES
from tests.layouts.stock.outcomes import Case, Outcome

DOCUMENT = Path(__file__).resolve().parents[3] / "docs" / "layouts.md"
_MARKS = re.compile(
    r"(<!-- written by python -m tests.layouts.stock --write -->\n).*?(<!-- end -->)",
    re.DOTALL,
)
_PUBLIC = frozenset(recipe.name for recipe in DRAFTS)
_LONGEST_REASON = 100


def counts(stock: Sequence[Case], fork: Sequence[Case]) -> str:
    """How many checkpoints of each kind met with each outcome."""
    rows = []
    for title, belongs in _KINDS.items():
        for vllm, cases in (("stock", stock), ("here", fork)):
            found = Counter(case.outcome for case in cases if belongs(case))
            numbers = [str(found[outcome] or "") for outcome in Outcome]
            rows.append([title, str(found.total()), vllm, *numbers])
    return _table(["checkpoints", "number", "in", *Outcome], rows)


def _is_public(case: Case) -> bool:
    return case.test in _PUBLIC


_KINDS: dict[str, Callable[[Case], bool]] = {
    "public drafts that can be served": lambda c: _is_public(c) and c.is_sound,
    "public drafts that cannot": lambda c: _is_public(c) and not c.is_sound,
    "odd cases that can be served": lambda c: not _is_public(c) and c.is_sound,
    "odd cases that cannot": lambda c: not _is_public(c) and not c.is_sound,
}


def public_drafts(stock: Sequence[Case], fork: Sequence[Case]) -> str:
    """Each public draft."""
    here = {case.test: case for case in fork}
    rows = [
        [case.test, case.outcome, here[case.test].outcome, _reason(case)]
        for case in stock
        if _is_public(case)
    ]
    return _table(["draft", "stock", "here", "what stock says, or gets wrong"], rows)


def odd_cases(stock: Sequence[Case], fork: Sequence[Case]) -> str:
    """Each odd case, its parameters and families together."""
    rows = []
    for test in dict.fromkeys(case.test for case in stock if not _is_public(case)):
        for is_sound in (True, False):
            of_stock, of_fork = (
                [c for c in cases if c.test == test and c.is_sound == is_sound]
                for cases in (stock, fork)
            )
            if of_stock:
                count = str(len(of_stock))
                rows.append([test, count, _fates(of_stock), _fates(of_fork)])
    return _table(["case", "number", "stock", "here"], rows)


def _fates(cases: Sequence[Case]) -> str:
    """`right`, or `4 right (llama, qwen3), 2 wrong numbers (deepseek)`."""
    outcomes = Counter(case.outcome for case in cases)
    if len(outcomes) == 1:
        return str(cases[0].outcome)
    everything = _by_parameter(cases)
    parts = []
    for outcome, count in sorted(outcomes.items(), key=lambda item: str(item[0])):
        found = _by_parameter(case for case in cases if case.outcome is outcome)
        which = ", ".join(_spelled(found, everything))
        parts.append(f"{count} {outcome} ({which})")
    return ", ".join(parts)


def _by_parameter(cases: Iterable[Case]) -> dict[str, list[str]]:
    """Families by the rest of the parameters."""
    found: dict[str, list[str]] = {}
    for case in cases:
        parts = case.parameters.split("-")
        families = [part for part in parts if part in FAMILIES]
        if len(families) != 1:
            parts, families = [case.parameters, *FAMILIES], []
        rest = "-".join(part for part in parts if part not in FAMILIES)
        found.setdefault(rest, []).extend(families)
    return found


def _spelled(
    found: dict[str, list[str]], everything: dict[str, list[str]]
) -> Iterator[str]:
    """What tells these cases from the others: families, parameters, or both."""
    if len({tuple(sorted(set(families))) for families in found.values()}) == 1 and (
        found.keys() == everything.keys()
    ):
        yield from dict.fromkeys(next(iter(found.values())))
        return
    for rest, families in found.items():
        whole = set(families) == set(everything[rest])
        yield rest if whole else f"{rest} {' '.join(dict.fromkeys(families))}".strip()


def _reason(case: Case) -> str:
    """Of a stock that does something else than it should, without its paths."""
    if case.is_as_it_should_be:
        return ""
    if case.outcome is Outcome.WRONG:
        return case.detail.partition(":")[0]
    text = case.detail.partition(". The available")[0]
    return text[:_LONGEST_REASON].replace("|", "\\|").replace("<", "&lt;")


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    return "\n".join(_lines(head, rows))


def _lines(head: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    yield f"| {' | '.join(head)} |"
    yield f"|{'---|' * len(head)}"
    for row in rows:
        yield f"| {' | '.join(row)} |"


def write(text: str) -> None:
    """Put `text` between the marks of docs/layouts.md.

    Raises:
        ValueError: the marks are not there.
    """
    before = DOCUMENT.read_text(encoding="utf-8")
    if not _MARKS.search(before):
        raise ValueError(f"{DOCUMENT} has no marks for the tables.")
    after = _MARKS.sub(lambda found: f"{found[1]}\n{text}\n{found[2]}", before)
    DOCUMENT.write_text(after, encoding="utf-8")

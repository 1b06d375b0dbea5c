# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""Prompts from forms and topics, and the filter that all training prompts pass.

`prompt_parts.json` holds, for each kind of prompt, forms with gaps and what may stand
in the gaps. A seeded draw fills them.
"""

import json
import random
import re
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
PARTS = HERE / "prompt_parts.json"
HELD_OUT = HERE / "held_out.jsonl"
# The prompts of the acceptance experiment, which nothing may train on either.
EXPERIMENT = HERE.parents[2] / "benchmarks" / "experiment" / "prompts.jsonl"

KINDS = (
    "writing",
    "roleplay",
    "reasoning",
    "math",
    "coding",
    "extraction",
    "stem",
    "humanities",
    "chat",
)
# A prompt that shares this part of its words with a held-out one is a near copy.
NEAR_COPY = 0.5
MOST_ATTEMPTS = 20
_WORD = re.compile(r"[a-z]+|[0-9]+")


@cache
def parts() -> dict[str, Any]:
    """Returns what `prompt_parts.json` holds."""
    content: dict[str, Any] = json.loads(PARTS.read_text())
    return content


def written_prompts(count: int, seed: int) -> list[str]:
    """Returns `count` distinct prompts; the kinds take turns.

    Raises:
        ValueError: the forms and topics do not give so many.
    """
    draw = random.Random(seed)
    seen: dict[str, None] = {}
    held_out = HeldOut.read()
    for attempt in range(count * MOST_ATTEMPTS):
        if len(seen) == count:
            return list(seen)
        prompt = fill(KINDS[attempt % len(KINDS)], draw)
        if prompt not in seen and not held_out.resembles(prompt):
            seen.setdefault(prompt)
    raise ValueError(f"prompt_parts.json gives {len(seen)} prompts, not {count}")


def fill(kind: str, draw: random.Random) -> str:
    """Returns one prompt of `kind`: a form drawn at random, its gaps filled."""
    form = draw.choice(parts()[kind]["forms"])
    if "{topic}" in form:
        form = form.replace("{topic}", draw.choice(parts()[kind]["topics"]))
    return str(form.format(**_gaps(draw)))


def _gaps(draw: random.Random) -> dict[str, Any]:
    words = parts()["words"]
    names = draw.sample(words["name"], 3)
    thing = draw.choice(words["thing"])
    small = draw.randint(2, 9)
    return {
        "name1": names[0],
        "name2": names[1],
        "name3": names[2],
        "thing": thing,
        "things": thing + "s",
        "place": draw.choice(words["place"]),
        "language": draw.choice(words["language"]),
        "a": draw.randint(6, 48),
        "b": draw.randint(50, 99),
        "big": draw.randrange(120, 2000, 20),
        "p": draw.randrange(5, 80, 5),
        "c": small,
        "c2": small * 2,
        "c4": small * 4,
        "c8": small * 8,
    }


def openings() -> list[str]:
    """Returns first words of user turns; some are empty."""
    return list(parts()["openings"])


class HeldOut:
    """The prompts that no training prompt may be, or nearly be."""

    def __init__(self, prompts: Iterable[str]) -> None:
        self._words = [set(words_of(prompt)) for prompt in prompts]

    @classmethod
    def read(cls) -> "HeldOut":
        """Reads the held-out prompts of this folder and of the experiment."""
        return cls(held_out_prompts())

    def resembles(self, prompt: str) -> bool:
        """Says whether `prompt` shares too many words with a held-out prompt."""
        words = set(words_of(prompt))
        return any(
            len(words & other) >= NEAR_COPY * len(words | other)
            for other in self._words
        )


def held_out_prompts() -> Iterator[str]:
    """Yields all prompts that are kept for evaluation."""
    for path in (HELD_OUT, EXPERIMENT):
        if path.is_file():
            for line in path.read_text().splitlines():
                yield json.loads(line)["prompt"]


def words_of(text: str) -> list[str]:
    """Returns the words and numbers of a text in lower case."""
    return _WORD.findall(text.lower())

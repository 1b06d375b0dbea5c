# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""Eighty questions, ten of each kind that MT-Bench has. The draft never saw them."""

import json
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any

FILE = Path(__file__).with_name("prompts.jsonl")


@dataclass(frozen=True)
class Prompt:
    """One question.

    Attributes:
        kind: writing, roleplay, reasoning, math, coding, extraction, stem or
            humanities.
        prompt: The question.
    """

    kind: str
    prompt: str


def load_prompts(count: int) -> list[Prompt]:
    """Returns `count` questions, taken from the kinds in turn.

    Raises:
        ValueError: There are not as many.
    """
    lines = FILE.read_text(encoding="utf-8").splitlines()
    by_kind: dict[str, list[Prompt]] = {}
    for prompt in (Prompt(**json.loads(line)) for line in lines):
        by_kind.setdefault(prompt.kind, []).append(prompt)
    if not 1 <= count <= len(lines):
        raise ValueError(f"{count} prompts were asked for; {FILE.name} has 1 to 80")
    rounds = zip_longest(*by_kind.values())
    in_turn = [prompt for turn in rounds for prompt in turn if prompt is not None]
    return in_turn[:count]


def as_chat(prompts: list[Prompt], target: Path) -> list[list[int]]:
    """Returns each question's token ids, in the chat format of the model in `target`.

    With the line that asks the model to answer at their end.
    """
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(target)

    def ids(question: str) -> list[int]:
        found: Any = tokenizer.apply_chat_template(
            [{"role": "user", "content": question}],
            add_generation_prompt=True,
            return_dict=False,
        )
        return found

    return [ids(prompt.prompt) for prompt in prompts]

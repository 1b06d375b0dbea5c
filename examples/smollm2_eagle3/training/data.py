# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""Makes user turns and answers with the target, a file for each batch.

User turns: the target, given the chat template up to the user's turn, writes what a
user might ask (the idea of Magpie, arXiv 2406.08464). A batch that has its file is not
made again, so that a run that was stopped goes on where it was.
"""

import json
import os
import random
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any

import torch
from generate import Ending, continue_all
from prompts import HeldOut, openings, words_of, written_prompts
from settings import Places, Recipe
from target import Target
from tqdm import tqdm
from transformers import AutoTokenizer

_MARK = "\u2603"  # stands where the user's turn begins while the template is cut there

Job = tuple[Path, list[Any]]


def make_turns(recipe: Recipe, places: Places) -> None:
    """Samples user turns behind the openings of `prompt_parts.json`."""
    starts = sorted(openings(), key=len)
    wanted = [
        starts[i * len(starts) // recipe.user_turns] for i in range(recipe.user_turns)
    ]
    jobs = _jobs(places.turns, wanted, recipe.generation_batch)
    _run(_sample_turns, jobs, recipe, places, "User turns")


def make_answers(recipe: Recipe, places: Places) -> None:
    """Answers all training prompts greedily."""
    chat = Chat(places.target)
    prompts = sorted(
        ((chat.ids(prompt), prompt) for prompt in training_prompts(recipe, places)),
        key=lambda pair: (len(pair[0]), pair),
    )
    jobs = _jobs(places.answers, prompts, recipe.generation_batch)
    # Whatever part is taken, it shall have prompts of all lengths.
    random.Random(recipe.seed).shuffle(jobs)
    jobs = jobs[: recipe.answer_batches]
    _run(_answer, jobs, recipe, places, "Answers")


def training_prompts(recipe: Recipe, places: Places) -> list[str]:
    """Returns written prompts and user turns without doubles and held-out prompts."""
    held_out = HeldOut.read()
    prompts = dict.fromkeys(written_prompts(recipe.written_prompts, recipe.seed))
    seen = {" ".join(words_of(prompt)) for prompt in prompts}
    for turn in read_all(places.turns):
        key = " ".join(words_of(turn))
        if key not in seen and not held_out.resembles(turn):
            seen.add(key)
            prompts.setdefault(turn)
    return list(prompts)


def read_all(folder: Path) -> list[Any]:
    """Returns what the batch files of `folder` hold, in their order."""
    files = sorted(folder.glob("*.json"))
    return [item for file in files for item in json.loads(file.read_text())]


class Chat:
    """The target's chat template around a prompt."""

    def __init__(self, folder: Path) -> None:
        self.tokenizer = AutoTokenizer.from_pretrained(folder)
        message = [{"role": "user", "content": _MARK}]
        text = self.tokenizer.apply_chat_template(
            message, tokenize=False, add_generation_prompt=True
        )
        self.before, self.behind = text.split(_MARK)

    def ids(self, prompt: str) -> list[int]:
        """Returns the tokens up to where the answer begins."""
        return self._encode(self.before + prompt + self.behind)

    def ids_of_open_turn(self, opening: str) -> list[int]:
        """Returns the tokens up to where the user goes on writing."""
        return self._encode(self.before + opening)

    def text(self, ids: list[int]) -> str:
        """Returns the text of `ids`, special tokens left out."""
        return str(self.tokenizer.decode(ids, skip_special_tokens=True))

    def _encode(self, text: str) -> list[int]:
        ids: list[int] = self.tokenizer(text, add_special_tokens=False).input_ids
        return ids


def _jobs(folder: Path, items: list[Any], size: int) -> list[Job]:
    folder.mkdir(parents=True, exist_ok=True)
    return [
        (folder / f"{start // size:04d}.json", items[start : start + size])
        for start in range(0, len(items), size)
    ]


def _run(
    work: Callable[[Job, Recipe], list[Any]],
    jobs: Iterable[Job],
    recipe: Recipe,
    places: Places,
    title: str,
) -> None:
    """Gives jobs without a file to one single-threaded process a core."""
    open_jobs = [job for job in jobs if not job[0].exists()]
    if not open_jobs:
        return
    with ProcessPoolExecutor(
        len(os.sched_getaffinity(0)), initializer=_start, initargs=(places.target,)
    ) as pool:
        futures = [pool.submit(_write, work, job, recipe) for job in open_jobs]
        for future in tqdm(as_completed(futures), title, len(futures), unit="batch"):
            future.result()


_tools: tuple[Target, Chat]


def _start(folder: Path) -> None:
    global _tools
    torch.set_num_threads(1)
    _tools = Target(folder), Chat(folder)


def _write(work: Callable[[Job, Recipe], list[Any]], job: Job, recipe: Recipe) -> None:
    partial = job[0].with_suffix(".partial")
    partial.write_text(json.dumps(work(job, recipe)))
    partial.rename(job[0])


def _sample_turns(job: Job, recipe: Recipe) -> list[str]:
    target, chat = _tools
    file, starts = job
    generator = torch.Generator().manual_seed(recipe.seed + int(file.stem))
    end = chat.tokenizer.eos_token_id
    outputs = continue_all(
        target,
        [chat.ids_of_open_turn(start) for start in starts],
        Ending(frozenset({end}), recipe.longest_turn),
        generator,
    )
    turns = []
    for start, output in zip(starts, outputs, strict=True):
        turn = (start + chat.text(output)).strip()
        if output[-1] == end and len(words_of(turn)) >= recipe.shortest_turn:
            turns.append(turn)
    return turns


def _answer(job: Job, recipe: Recipe) -> list[dict[str, Any]]:
    target, chat = _tools
    ending = Ending(frozenset({chat.tokenizer.eos_token_id}), recipe.longest_answer)
    prompts = [ids for ids, _ in job[1]]
    return [
        {"prompt": text, "ids": ids, "answer": answer}
        for (ids, text), answer in zip(
            job[1], continue_all(target, prompts, ending), strict=True
        )
    ]

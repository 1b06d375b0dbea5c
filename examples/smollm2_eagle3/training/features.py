# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""What the target thinks while it reads prompts and its own answers.

For each batch of answers one safetensors file: the texts' tokens in a row, where each
text and its answer begins, and the hidden states, which are mapped into memory when
training reads them.
"""

import json
import os
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from settings import Places, Recipe
from target import Cache, Target
from torch import Tensor
from tqdm import tqdm


@dataclass(frozen=True)
class Text:
    """A prompt with its answer, and the target's states at each token."""

    tokens: Tensor
    """int32, `[tokens]`"""
    answer: int
    """Where the answer begins in `tokens`."""
    aux: Tensor
    """Inputs of the layers that the draft reads, `[tokens, aux_states * hidden]`."""
    final: Tensor
    """Normed output of the last layer, `[tokens, hidden]`."""


@torch.no_grad()
def read_texts(
    target: Target, rows: list[dict[str, Any]], aux_layers: tuple[int, ...]
) -> list[Text]:
    """Shows the target whole texts, one batch."""
    texts = [row["ids"] + row["answer"] for row in rows]
    width = max(map(len, texts))
    padding = torch.tensor([width - len(text) for text in texts])
    tokens = torch.tensor([[0] * (width - len(text)) + text for text in texts])
    cache = Cache(len(texts), target.shape, target.dtype)
    final, tapped = target.states(tokens, padding, cache, aux_layers)
    aux = torch.cat(tapped, dim=-1)
    return [
        Text(tokens[i, skip:].int(), len(row["ids"]), aux[i, skip:], final[i, skip:])
        for i, (row, skip) in enumerate(zip(rows, padding.tolist(), strict=True))
    ]


def make_features(recipe: Recipe, places: Places) -> None:
    """Writes a feature file for each file of answers that has none."""
    places.features.mkdir(parents=True, exist_ok=True)
    jobs = [
        (source, places.features / f"{source.stem}.safetensors")
        for source in sorted(places.answers.glob("*.json"))
    ]
    jobs = [(source, file) for source, file in jobs if not file.exists()]
    if not jobs:
        return
    with ProcessPoolExecutor(
        len(os.sched_getaffinity(0)), initializer=_start, initargs=(places.target,)
    ) as pool:
        futures = [pool.submit(_write, *job, recipe) for job in jobs]
        for future in tqdm(as_completed(futures), "Features", len(jobs), unit="batch"):
            future.result()


_target: Target


def _start(folder: Path) -> None:
    global _target
    torch.set_num_threads(1)
    _target = Target(folder)


def _write(source: Path, file: Path, recipe: Recipe) -> None:
    rows = json.loads(source.read_text())
    size = recipe.feature_batch
    texts = [
        text
        for start in range(0, len(rows), size)
        for text in read_texts(_target, rows[start : start + size], recipe.aux_layers)
    ]
    arrays = {
        "tokens": torch.cat([text.tokens for text in texts]),
        "lengths": torch.tensor([len(text.tokens) for text in texts]),
        "answers": torch.tensor([text.answer for text in texts]),
        "aux": torch.cat([text.aux for text in texts]),
        "final": torch.cat([text.final for text in texts]),
    }
    partial = file.with_suffix(".partial")
    save_file(arrays, partial)
    partial.rename(file)


def load_texts(folder: Path) -> Iterator[Text]:
    """Yields the texts of all feature files; states stay on disk until read."""
    for file in sorted(folder.glob("*.safetensors")):
        arrays = load_file(file)
        lengths = arrays["lengths"].tolist()
        parts = (arrays[name].split(lengths) for name in ("tokens", "aux", "final"))
        for tokens, aux, final, answer in zip(
            *parts, arrays["answers"].tolist(), strict=True
        ):
            yield Text(tokens, answer, aux, final)

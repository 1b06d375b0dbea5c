# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""Makes the data, trains the draft, writes it and measures it.

    python examples/smollm2_eagle3/training/run.py

Stop it whenever you like: the same command goes on where it was.
"""

import argparse
import json
import sys
from pathlib import Path

import torch
from data import Chat, make_answers, make_turns
from draft import Draft
from export import frequent_ids, write_draft
from features import load_texts, make_features
from generate import Ending, continue_all
from loss import Head
from origin import check_origin
from prompts import HELD_OUT
from settings import Places, Recipe
from target import Target
from tqdm import tqdm
from train import Training

STAGES = ("turns", "answers", "features", "train", "evaluate")


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--target", type=Path, default=Places.target)
    parser.add_argument("--work", type=Path, default=Places.root, help="for all data")
    parser.add_argument("--output", type=Path, default=Places.output)
    parser.add_argument("--stages", nargs="+", choices=STAGES, default=STAGES)
    parser.add_argument("--prompts", type=Path, default=HELD_OUT, help="to evaluate on")
    parser.add_argument("--draft", type=Path, help="to evaluate; else the output")
    options = parser.parse_args()
    recipe = Recipe()
    places = Places(options.target, options.work, options.output)
    if not (places.target / "model.safetensors").exists():
        print(
            f"There is no target in {places.target}; run build_target.py.",
            file=sys.stderr,
        )
        return 1
    if set(options.stages) != {"evaluate"}:
        check_origin(recipe, places)
    if "turns" in options.stages:
        make_turns(recipe, places)
    if "answers" in options.stages:
        make_answers(recipe, places)
    if "features" in options.stages:
        make_features(recipe, places)
    if "train" in options.stages:
        train(recipe, places)
    if "evaluate" in options.stages:
        evaluate(recipe, places, options.draft or places.output, options.prompts)
    return 0


def train(recipe: Recipe, places: Places) -> None:
    """Trains on all features and writes the draft."""
    places.meeting.unlink(missing_ok=True)
    torch.multiprocessing.spawn(train_together, (recipe, places), recipe.workers)
    print(f"The draft is written: {places.output}", flush=True)


def train_together(worker: int, recipe: Recipe, places: Places) -> None:
    """Trains as one of the recipe's workers; the first writes the draft."""
    torch.set_num_threads(1)
    torch.manual_seed(recipe.seed)
    meeting = f"file://{places.meeting}"
    torch.distributed.init_process_group("gloo", meeting, None, recipe.workers, worker)
    target = Target(places.target)
    texts = list(load_texts(places.features))
    ids = frequent_ids(texts, target.shape.vocabulary, recipe.frequent_ids)
    draft = Draft(target.shape, len(recipe.aux_layers))
    draft.start_from(target)
    head = Head.of(target.embeddings, ids)
    training = Training(draft, head, texts, recipe, worker)
    training.run(places.checkpoint)
    if worker == 0:
        tokens = sum(len(text.tokens) - text.answer for text in texts)
        print(f"{len(texts)} texts with {tokens} answer tokens", flush=True)
        write_draft(draft, ids, places.target, recipe, places.output)
    torch.distributed.destroy_process_group()


def evaluate(recipe: Recipe, places: Places, draft_folder: Path, prompts: Path) -> None:
    """Predicts the acceptance on held-out prompts with the reference, in float32."""
    # Modules of the folder above, which `settings` makes known.
    import reference
    from reference_walk import total, walk

    answering, chat = Target(places.target, torch.float32), Chat(places.target)
    ending = Ending(frozenset({chat.tokenizer.eos_token_id}), recipe.longest_answer)
    rows = [json.loads(line) for line in prompts.read_text().splitlines()]
    asked = [chat.ids(row["prompt"]) for row in rows]
    print(f"Answering {len(asked)} prompts of {prompts.name}", flush=True)
    answers = continue_all(answering, asked, ending)
    target = reference.Target(places.target, recipe.aux_layers)
    draft = reference.Draft(draft_folder, target)
    counts = []
    for prompt, answer in zip(asked, tqdm(answers, "Walking"), strict=True):
        reading = target.read(reference.Request(tuple(prompt), tuple(answer)))
        counts.append(walk(reading, draft.propose(reading)))
    every = total(counts)
    print(f"drafts                 {every.num_drafts}")
    print(f"accepted per position  {every.num_accepted_tokens_per_pos}")
    print(f"acceptance length      {every.acceptance_length:.3f}")


if __name__ == "__main__":
    sys.exit(main())

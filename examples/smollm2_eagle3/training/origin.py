# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""Keeps data of different recipes apart.

The stages go on with whatever batch files are there. A note beside them says what they
were made from, so that no other recipe goes on with them.
"""

import hashlib
import json
from pathlib import Path

from prompts import PARTS, held_out_prompts
from settings import Places, Recipe

# What a change of would change data that is there already.
DECISIVE = (
    "seed",
    "written_prompts",
    "user_turns",
    "longest_turn",
    "shortest_turn",
    "longest_answer",
    "generation_batch",
    "feature_batch",
    "aux_layers",
)


def check_origin(recipe: Recipe, places: Places) -> None:
    """Notes what the data is made from, or compares with the note.

    Raises:
        ValueError: the data that is there was made from something else.
    """
    file = places.root / "origin.json"
    wanted = origin_of(recipe, places)
    if not file.exists():
        places.root.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(wanted, indent=2) + "\n")
        return
    found = json.loads(file.read_text())
    changed = [
        f"{key} was {found.get(key)} and is {value}"
        for key, value in wanted.items()
        if found.get(key) != value
    ]
    if changed:
        raise ValueError(
            f"The data in {places.root} was made otherwise: {'; '.join(changed)}. "
            "Remove the folder, or work in another one with --work."
        )


def origin_of(recipe: Recipe, places: Places) -> dict[str, str]:
    """Returns everything that the data depends on, as text."""
    held_out = "\n".join(held_out_prompts()).encode()
    return {key: str(getattr(recipe, key)) for key in DECISIVE} | {
        "target": _digest(places.target / "model.safetensors"),
        "prompt parts": _digest(PARTS),
        "held-out prompts": hashlib.sha256(held_out).hexdigest(),
    }


def _digest(file: Path) -> str:
    with open(file, "rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()

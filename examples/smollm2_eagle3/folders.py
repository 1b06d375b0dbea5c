# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""Model folders that are either complete or not there.

A folder is built beside its final name and renamed when it is done, so nobody meets
half a model. It remembers the recipe that it was built from: a folder of another
recipe counts as missing.
"""

import fcntl
import hashlib
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
EXAMPLE = Path(__file__).resolve().parent
MODELS = REPOSITORY / "build" / "smollm2"

_RECIPE_FILE = "recipe.sha256"


def recipe_of(files: Iterable[Path]) -> str:
    """Returns a digest of the files that decide what a folder holds."""
    digest = hashlib.sha256()
    for file in files:
        digest.update(file.read_bytes())
    return digest.hexdigest()


def recipe_in(folder: Path) -> str | None:
    """Returns the recipe that `folder` was built from; None if it is not complete."""
    file = folder / _RECIPE_FILE
    return file.read_text().strip() if file.is_file() else None


@contextmanager
def lock(folder: Path) -> Iterator[None]:
    """Lets one process at a time build `folder`; others wait."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with open(folder.parent / f".{folder.name}.lock", "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


@contextmanager
def build(folder: Path, recipe: str) -> Iterator[Path]:
    """Yields an empty folder, which becomes `folder` if the block succeeds."""
    partial = folder.with_name(f".{folder.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    yield partial
    (partial / _RECIPE_FILE).write_text(recipe + "\n")
    shutil.rmtree(folder, ignore_errors=True)
    partial.rename(folder)

# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""A model folder of the example is complete or not there."""

from pathlib import Path
from types import ModuleType

import pytest

from tests.support.example import Example


def build(folders: ModuleType, folder: Path, recipe: str, content: str) -> None:
    with folders.build(folder, recipe) as partial:
        (partial / "model").write_text(content)


def test_a_built_folder_knows_its_recipe(example: Example, tmp_path: Path) -> None:
    folders, folder = example("folders"), tmp_path / "target"
    assert folders.recipe_in(folder) is None

    build(folders, folder, "one", "weights")

    assert folders.recipe_in(folder) == "one"
    assert (folder / "model").read_text() == "weights"


def test_a_newer_recipe_replaces_all_of_the_folder(
    example: Example, tmp_path: Path
) -> None:
    folders, folder = example("folders"), tmp_path / "target"
    build(folders, folder, "one", "weights")
    (folder / "left over").touch()

    build(folders, folder, "two", "better weights")

    assert folders.recipe_in(folder) == "two"
    assert (folder / "model").read_text() == "better weights"
    assert not (folder / "left over").exists()


def test_an_interrupted_build_leaves_things_as_they_were(
    example: Example, tmp_path: Path
) -> None:
    folders, folder = example("folders"), tmp_path / "target"
    build(folders, folder, "one", "weights")

    with pytest.raises(KeyboardInterrupt), folders.build(folder, "two") as partial:
        (partial / "model").write_text("half")
        raise KeyboardInterrupt

    assert folders.recipe_in(folder) == "one"
    assert (folder / "model").read_text() == "weights"
    build(folders, folder, "two", "whole")
    assert (folder / "model").read_text() == "whole"

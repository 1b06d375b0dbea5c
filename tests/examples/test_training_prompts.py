# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""Prompts of the draft's training stay away from those of its evaluation."""

import dataclasses
import json
from collections import Counter
from pathlib import Path
from types import ModuleType

import pytest

from tests.support.example import EXAMPLE, REPOSITORY, Example


@pytest.fixture
def prompts(example: Example, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(EXAMPLE / "training"))
    return example("prompts")


@pytest.fixture
def data(prompts: ModuleType, example: Example) -> ModuleType:
    return example("data")


@pytest.fixture
def settings(prompts: ModuleType, example: Example) -> ModuleType:
    return example("settings")


def held_out() -> list[str]:
    files = (
        EXAMPLE / "training" / "held_out.jsonl",
        REPOSITORY / "benchmarks" / "experiment" / "prompts.jsonl",
    )
    lines = [line for file in files for line in file.read_text().splitlines()]
    return [json.loads(line)["prompt"] for line in lines]


def test_held_out_prompts_of_both_files_are_known(prompts: ModuleType) -> None:
    assert list(prompts.held_out_prompts()) == held_out()
    assert len(set(held_out())) == len(held_out()) == 112


def test_copies_and_near_copies_are_recognised(prompts: ModuleType) -> None:
    known = prompts.HeldOut.read()
    for prompt in held_out():
        assert known.resembles(prompt)
        assert known.resembles(prompt.upper() + " Please!")
    assert not known.resembles("How do I knit a scarf for a giraffe?")


def test_written_prompts_are_many_varied_seeded_and_not_held_out(
    prompts: ModuleType, settings: ModuleType
) -> None:
    recipe = settings.Recipe()
    written = prompts.written_prompts(recipe.written_prompts, recipe.seed)
    assert len(set(written)) == recipe.written_prompts
    assert written == prompts.written_prompts(recipe.written_prompts, recipe.seed)
    assert set(written[:100]) != set(prompts.written_prompts(100, recipe.seed + 1))
    assert not any("{" in prompt or "}" in prompt for prompt in written)
    known = prompts.HeldOut.read()
    assert not any(known.resembles(prompt) for prompt in written)
    starts = Counter(prompt.split()[0] for prompt in written)
    assert len(starts) > 30


def test_every_kind_has_prompts_of_its_own(prompts: ModuleType) -> None:
    kinds = {kind: value for kind, value in prompts.parts().items() if "forms" in value}
    assert set(kinds) == set(prompts.KINDS)
    forms = [form for kind in kinds.values() for form in kind["forms"]]
    assert len(forms) == len(set(forms))


def test_more_prompts_than_the_parts_give_are_refused(
    prompts: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prompts, "fill", lambda *_: "the same again")
    with pytest.raises(ValueError, match="gives 1 prompts, not 2"):
        prompts.written_prompts(2, 0)


def test_training_prompts_drop_doubles_and_held_out_turns(
    data: ModuleType, settings: ModuleType, tmp_path: Path
) -> None:
    places = settings.Places(tmp_path, tmp_path)
    places.turns.mkdir()
    stolen = held_out()[::20]
    turns = ["How are rainbows made?", "how are rainbows made", *stolen]
    (places.turns / "0000.json").write_text(json.dumps(turns[:2]))
    (places.turns / "0001.json").write_text(json.dumps(turns[2:]))
    recipe = settings.Recipe(written_prompts=30)
    found = data.training_prompts(recipe, places)
    assert len(found) == 31
    assert found[-1] == "How are rainbows made?"
    assert not set(found) & set(held_out())


def test_data_of_another_recipe_is_refused(
    prompts: ModuleType, example: Example, settings: ModuleType, tmp_path: Path
) -> None:
    origin = example("origin")
    places = settings.Places(tmp_path / "target", tmp_path / "work")
    places.target.mkdir()
    weights = places.target / "model.safetensors"
    weights.write_bytes(b"one")
    recipe = settings.Recipe()
    origin.check_origin(recipe, places)
    origin.check_origin(dataclasses.replace(recipe, epochs=1), places)
    longer = dataclasses.replace(recipe, longest_answer=64)
    with pytest.raises(ValueError, match="longest_answer was 128 and is 64"):
        origin.check_origin(longer, places)
    weights.write_bytes(b"two")
    with pytest.raises(ValueError, match="target was"):
        origin.check_origin(recipe, places)

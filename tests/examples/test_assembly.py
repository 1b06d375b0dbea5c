# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""Drafts in four vocabularies from one backbone, on a target of sixteen ids."""

import json
import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from tests.support.example import EXAMPLE, Example

VOCABULARIES = ("full", "default", "reduced", "full-d2t")
FREQUENT = [0, 1, 5, 6, 11]
TARGET_VOCAB, HIDDEN = 16, 4
COMMITTED = EXAMPLE / "backbone"
COMMITTED_LIMIT = 11_000_000  # bytes
NAMES = {
    "fc.weight",
    "norm.weight",
    "midlayer.hidden_norm.weight",
    "midlayer.input_layernorm.weight",
    "midlayer.post_attention_layernorm.weight",
    *(f"midlayer.self_attn.{name}_proj.weight" for name in "qkvo"),
    *(f"midlayer.mlp.{name}_proj.weight" for name in ("gate", "up", "down")),
}

Tensors = dict[str, torch.Tensor]


@dataclass(frozen=True)
class Workshop:
    """Folders that `build_draft.py` works with, and how to run it."""

    target: Path
    backbone: Path
    output: Path
    run: Callable[..., int]

    @property
    def head(self) -> torch.Tensor:
        weights = load_file(self.target / "model.safetensors")
        return weights["model.embed_tokens.weight"]

    def draft(self, vocabulary: str) -> tuple[dict, Tensors]:
        folder = self.output / f"draft-{vocabulary}"
        config = json.loads((folder / "config.json").read_text())
        return config, load_file(folder / "model.safetensors")

    def weights_file(self, vocabulary: str) -> Path:
        return self.output / f"draft-{vocabulary}" / "model.safetensors"


@pytest.fixture
def workshop(
    example: Example, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Workshop:
    build_draft = example("build_draft")
    target, backbone, output = (tmp_path / name for name in ("target", "in", "out"))
    write_target(target)
    write_backbone(backbone)
    folders = ["--target", target, "--backbone", backbone, "--output", output]

    def run(*arguments: str) -> int:
        monkeypatch.setattr(sys, "argv", ["", *map(str, folders), *arguments])
        return build_draft.main()

    return Workshop(target, backbone, output, run)


def write_target(folder: Path) -> None:
    folder.mkdir()
    head = torch.arange(TARGET_VOCAB * HIDDEN).view(TARGET_VOCAB, HIDDEN)
    weights = {"model.embed_tokens.weight": head.bfloat16()}
    save_file(weights, folder / "model.safetensors")
    (folder / "config.json").write_text(json.dumps({"tie_word_embeddings": True}))
    (folder / "recipe.sha256").write_text("a target\n")


def write_backbone(folder: Path, fc: float = 0.5) -> None:
    folder.mkdir(exist_ok=True)
    weights = {
        "fc.weight": torch.full((HIDDEN, 3 * HIDDEN), fc).bfloat16(),
        "norm.weight": torch.ones(HIDDEN).bfloat16(),
    }
    save_file(weights, folder / "model.safetensors")
    config = {"model_type": "llama", "vocab_size": TARGET_VOCAB}
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "frequent_ids.json").write_text(json.dumps(FREQUENT))


@pytest.mark.parametrize(
    "vocabulary, size, added",
    [
        ("full", TARGET_VOCAB, set()),
        ("default", None, set()),
        ("reduced", len(FREQUENT), {"lm_head.weight", "d2t", "t2d"}),
        ("full-d2t", TARGET_VOCAB, {"lm_head.weight", "d2t", "t2d"}),
    ],
)
def test_a_vocabulary_adds_what_it_needs_to_the_backbone(
    workshop: Workshop, vocabulary: str, size: int | None, added: set[str]
) -> None:
    assert workshop.run("--vocab", vocabulary) == 0

    config, weights = workshop.draft(vocabulary)
    trained = load_file(workshop.backbone / "model.safetensors")
    assert weights.keys() - trained.keys() == added
    for name, weight in trained.items():
        assert torch.equal(weights[name], weight)
    assert config.pop("draft_vocab_size", None) == size
    assert config == json.loads((workshop.backbone / "config.json").read_text())
    assert [path.name for path in workshop.output.glob("draft-*")] == [
        f"draft-{vocabulary}"
    ]


def test_a_reduced_draft_scores_the_frequent_ids_as_the_target_does(
    workshop: Workshop,
) -> None:
    workshop.run("--vocab", "reduced")

    _, weights = workshop.draft("reduced")
    assert weights["d2t"].dtype == torch.int64
    target_ids = [id + int(weights["d2t"][id]) for id in range(len(FREQUENT))]
    assert target_ids == FREQUENT
    for row, target_id in zip(weights["lm_head.weight"], FREQUENT, strict=True):
        assert torch.equal(row, workshop.head[target_id])
    assert weights["t2d"].dtype == torch.bool
    assert weights["t2d"].nonzero().flatten().tolist() == FREQUENT
    assert len(weights["t2d"]) == TARGET_VOCAB


def test_a_full_draft_with_a_map_has_the_targets_head_and_moves_nothing(
    workshop: Workshop,
) -> None:
    workshop.run("--vocab", "full-d2t")

    _, weights = workshop.draft("full-d2t")
    assert torch.equal(weights["lm_head.weight"], workshop.head)
    assert torch.equal(weights["d2t"], torch.zeros(TARGET_VOCAB, dtype=torch.int64))
    assert torch.equal(weights["t2d"], torch.ones(TARGET_VOCAB, dtype=torch.bool))


def test_all_vocabularies_are_built_on_request_and_full_without(
    workshop: Workshop,
) -> None:
    workshop.run()
    assert [path.name for path in workshop.output.glob("draft-*")] == ["draft-full"]

    workshop.run("--all")
    assert {path.name for path in workshop.output.glob("draft-*")} == {
        f"draft-{vocabulary}" for vocabulary in VOCABULARIES
    }


def test_building_again_gives_the_same_bytes(workshop: Workshop) -> None:
    workshop.run("--all")
    first = {name: workshop.weights_file(name).read_bytes() for name in VOCABULARIES}
    shutil.rmtree(workshop.output)

    workshop.run("--all")

    for name in VOCABULARIES:
        assert workshop.weights_file(name).read_bytes() == first[name]


def test_a_draft_that_is_there_is_left_alone(workshop: Workshop) -> None:
    workshop.run("--all")
    first = {name: workshop.weights_file(name).stat() for name in VOCABULARIES}

    workshop.run("--all")

    for name in VOCABULARIES:
        assert workshop.weights_file(name).stat() == first[name]


def test_a_new_backbone_replaces_the_draft(workshop: Workshop) -> None:
    workshop.run()
    write_backbone(workshop.backbone, fc=0.25)

    workshop.run()

    _, weights = workshop.draft("full")
    assert weights["fc.weight"][0, 0] == 0.25


def test_another_list_of_frequent_ids_replaces_the_draft(workshop: Workshop) -> None:
    workshop.run("--vocab", "reduced")
    (workshop.backbone / "frequent_ids.json").write_text("[0, 2, 4]")

    workshop.run("--vocab", "reduced")

    config, weights = workshop.draft("reduced")
    assert config["draft_vocab_size"] == 3
    assert weights["d2t"].tolist() == [0, 1, 2]


def test_another_target_replaces_the_draft(workshop: Workshop) -> None:
    workshop.run("--vocab", "full-d2t")
    save_file(
        {"model.embed_tokens.weight": -workshop.head},
        workshop.target / "model.safetensors",
    )
    (workshop.target / "recipe.sha256").write_text("another target\n")

    workshop.run("--vocab", "full-d2t")

    _, weights = workshop.draft("full-d2t")
    assert torch.equal(weights["lm_head.weight"], workshop.head)


def test_without_a_target_nothing_is_built(
    workshop: Workshop, capsys: pytest.CaptureFixture[str]
) -> None:
    (workshop.target / "recipe.sha256").unlink()

    assert workshop.run() == 1

    assert "run build_target.py" in capsys.readouterr().err
    assert not workshop.output.exists()


def test_the_committed_backbone_is_what_the_drafts_are_made_from() -> None:
    config = json.loads((COMMITTED / "config.json").read_text())
    weights = load_file(COMMITTED / "model.safetensors")
    ids = json.loads((COMMITTED / "frequent_ids.json").read_text())

    assert (COMMITTED / "model.safetensors").stat().st_size <= COMMITTED_LIMIT
    assert weights.keys() == NAMES
    assert {weight.dtype for weight in weights.values()} == {torch.bfloat16}
    assert "draft_vocab_size" not in config
    assert ids == sorted(set(ids))
    assert len(ids) == 8192
    assert min(ids) >= 0 and max(ids) < config["vocab_size"] == 49152

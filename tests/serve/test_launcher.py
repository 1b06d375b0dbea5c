# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""What `make serve` asks `vllm serve` for, without starting it."""

import json
import socket
import sys
from pathlib import Path

import pytest

from tests.support.example import Example, Models

OWN_PAIR = ("--target", "org/target", "--draft", "org/draft")


def arguments_for(example: Example, *launcher_arguments: str) -> list[str]:
    serve = example("serve")
    return serve.vllm_arguments(serve.parse(list(launcher_arguments)))


def value_of(arguments: list[str], option: str) -> str:
    return arguments[arguments.index(option) + 1]


def test_an_own_pair_is_served_by_a_plain_vllm_serve(example: Example) -> None:
    arguments = arguments_for(example, *OWN_PAIR, "--spec-tokens", "5")

    assert arguments[:2] == ["serve", "org/target"]
    assert json.loads(value_of(arguments, "--speculative-config")) == {
        "method": "eagle3",
        "model": "org/draft",
        "num_speculative_tokens": 5,
    }
    assert "--served-model-name" not in arguments


def test_without_speculative_tokens_there_is_no_draft(example: Example) -> None:
    arguments = arguments_for(example, *OWN_PAIR, "--spec-tokens", "0")

    assert "--speculative-config" not in arguments


def test_a_gpu_gets_no_options_that_are_for_cpus(example: Example) -> None:
    arguments = arguments_for(example, *OWN_PAIR, "--backend", "cuda")

    for option in ("--dtype", "--max-model-len", "--enforce-eager"):
        assert option not in arguments


def test_further_arguments_come_last_so_that_they_win(example: Example) -> None:
    further = ["--max-model-len", "512", "--no-enforce-eager"]
    arguments = arguments_for(example, *OWN_PAIR, "--", *further)

    assert "--enforce-eager" in arguments
    assert arguments[-3:] == further


@pytest.mark.parametrize("only", [OWN_PAIR[:2], OWN_PAIR[2:]])
def test_a_target_without_a_draft_or_the_reverse_is_refused(
    example: Example, only: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        arguments_for(example, *only)

    assert "name both, the target and its draft" in capsys.readouterr().err


@pytest.mark.parametrize("vocabulary", ["full", "default", "reduced", "full-d2t"])
def test_the_vocabulary_chooses_the_examples_draft(
    example: Example, models: Models, vocabulary: str
) -> None:
    arguments = arguments_for(example, "--vocab", vocabulary)

    speculative = json.loads(value_of(arguments, "--speculative-config"))
    assert arguments[1] == str(models.target)
    assert speculative["model"] == str(models.draft(vocabulary))
    assert value_of(arguments, "--served-model-name") == "smollm2"


def test_full_vocabulary_is_the_default(example: Example, models: Models) -> None:
    arguments = arguments_for(example)

    speculative = json.loads(value_of(arguments, "--speculative-config"))
    assert speculative["model"] == str(models.draft("full"))


def test_a_vocabulary_for_an_own_draft_is_refused(
    example: Example, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        arguments_for(example, *OWN_PAIR, "--vocab", "reduced")

    assert "VOCAB chooses among the example's drafts" in capsys.readouterr().err


def test_a_draft_that_is_not_built_is_refused_with_the_way_to_build_it(
    example: Example,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    serve = example("serve")
    monkeypatch.setattr(serve, "draft_folder", tmp_path.joinpath)

    with pytest.raises(SystemExit):
        serve.parse(["--vocab", "reduced"])

    assert "make models VOCAB=reduced" in capsys.readouterr().err


@pytest.mark.parametrize(
    "model, reason",
    [
        ("/no/such", "neither a folder nor a Hub id"),
        ("empty", "is a folder without config.json"),
    ],
)
def test_a_model_that_cannot_be_there_is_refused_at_once(
    example: Example,
    model: str,
    reason: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "empty").mkdir()
    folder = str(tmp_path / model)

    with pytest.raises(SystemExit):
        arguments_for(example, "--target", "org/target", "--draft", folder)

    assert f"DRAFT={folder}" in (error := capsys.readouterr().err)
    assert reason in error


def test_a_port_in_use_is_refused_at_once(
    example: Example, capsys: pytest.CaptureFixture[str]
) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        with pytest.raises(SystemExit):
            example("serve").check_port(other.getsockname()[1])

    assert "make serve PORT=" in capsys.readouterr().err


def test_intels_openmp_is_loaded_first_and_what_is_set_stays(
    example: Example, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    openmp = tmp_path / "lib" / "libiomp5.so"
    openmp.parent.mkdir()
    openmp.touch()
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    present = {"LD_PRELOAD": "/lib/other.so", "VLLM_CPU_KVCACHE_SPACE": "7"}

    added = example("serve").cpu_environment(present)

    assert added["LD_PRELOAD"] == f"{openmp}:/lib/other.so"
    assert "VLLM_CPU_KVCACHE_SPACE" not in added
    again = example("serve").cpu_environment(present | added)
    assert again == {}
    other_openmp = {"LD_PRELOAD": "/usr/lib/libgomp.so.1"}
    assert "LD_PRELOAD" not in example("serve").cpu_environment(other_openmp)

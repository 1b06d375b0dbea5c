# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""What runs the commands of the documentation, and whether they have their options."""

import argparse
import ast
import re
import shlex
import subprocess

import pytest

from tests.docs import shown
from tests.docs.commands import KNOWN, InFile, TestOf
from tests.support.environment import AT_START
from vllm_eagle3.cli import build_parser

COMMANDS = sorted(shown.commands())
PROOFS = sorted({proof for proofs in KNOWN.values() for proof in proofs}, key=str)


def of_program(*names: str) -> list[list[str]]:
    """The words of the shown commands of a program, up to a pipe or an `||`."""
    found = [re.split(r" \|\|? ", command)[0] for command in COMMANDS]
    words = [shlex.split(command) for command in found]
    return [command for command in words if command[0] in names]


def test_every_command_that_is_shown_is_run_by_something():
    unknown = {c: d for c, d in shown.commands().items() if not KNOWN.get(c)}
    assert unknown == {}


def test_no_command_is_known_that_nobody_is_shown():
    assert set(KNOWN) - set(COMMANDS) == set()


@pytest.mark.parametrize("proof", PROOFS, ids=str)
def test_what_runs_a_command_exists(proof: TestOf | InFile):
    text = (shown.ROOT / proof.file).read_text(encoding="utf-8")
    if isinstance(proof, InFile):
        assert proof.text in text
    else:
        functions = [
            n for n in ast.walk(ast.parse(text)) if isinstance(n, ast.FunctionDef)
        ]
        assert proof.name in [function.name for function in functions]


@pytest.fixture(scope="module")
def make_help() -> str:
    return make("help")


def make(*arguments: str) -> str:
    command = ["make", "--no-print-directory", *arguments]
    done = subprocess.run(
        command, cwd=shown.ROOT, env=AT_START, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("words", of_program("make"), ids=" ".join)
def test_make_knows_target_and_variables(words: list[str], make_help: str):
    assert make("--dry-run", *words[1:])
    for variable in re.findall(r"([A-Z_]+)=", " ".join(words)):
        assert re.search(rf"^  {variable} ", make_help, re.MULTILINE), variable


@pytest.mark.parametrize(
    "words", of_program("vllm-eagle3", ".venv/bin/vllm-eagle3"), ids=" ".join
)
def test_the_command_line_takes_it(words: list[str]):
    assert build_parser().parse_args(words[1:]).run


SCRIPTS = [
    words for words in of_program("python", ".venv/bin/python") if words[1] != "-c"
]


@pytest.mark.parametrize("words", SCRIPTS, ids=" ".join)
def test_a_script_exists_and_has_the_options(words: list[str]):
    path = shown.ROOT / words[1]
    if words[1] == "-m":
        module = shown.ROOT / words[2].replace(".", "/")
        path = module / "__main__.py" if module.is_dir() else module.with_suffix(".py")
    source = path.read_text(encoding="utf-8")
    for option in (word for word in words if word.startswith("--")):
        assert f'"{option}"' in source


@pytest.mark.parametrize(
    "path", shown.documents(), ids=lambda path: str(path.relative_to(shown.ROOT))
)
def test_what_is_named_in_passing_exists(path, make_help: str):
    text = path.read_text(encoding="utf-8")
    targets = set(re.findall(r"`make ([a-z][a-z-]*)\b", text.replace("\n", " ")))
    assert targets - set(re.findall(r"^  ([a-z-]+) ", make_help, re.MULTILINE)) == set()
    named = set(re.findall(r"`vllm-eagle3 ([a-z][a-z-]*)\b", text.replace("\n", " ")))
    assert named - subcommands() == set()


def subcommands() -> set[str]:
    (action,) = (
        action
        for action in build_parser()._actions
        if isinstance(action, argparse._SubParsersAction)
    )
    return set(action.choices)


@pytest.mark.parametrize(
    ("kind", "block", "expected"),
    [
        ("bash", "make a   # why\n\n# a remark\nmake b", ["make a", "make b"]),
        ("bash", "vllm serve A \\\n  '{\"b\":\n  1}'", ["vllm serve A '{\"b\": 1}'"]),
        (
            "bash",
            "python - x <<'EOF'\nmake a\nEOF\nmake b",
            ["python - x <<'EOF'", "make b"],
        ),
        ("console", "$ make a\nmake b\n$ make c", ["make a", "make c"]),
    ],
    ids=["comments", "continued", "fed by lines", "with output"],
)
def test_commands_are_found_in_a_block(kind: str, block: str, expected: list[str]):
    assert list(shown.in_block(kind, block)) == expected

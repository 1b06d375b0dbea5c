# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""Each patch stands alone, by what its files import and its message names.

That its tests pass is seen in whole trees, in minutes; this is seen at once.
"""

import ast
import importlib.util
import re
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

import pytest

from vllm_eagle3 import vllm_tree
from vllm_eagle3.export import series
from vllm_eagle3.export.sources import MODELS, TESTS

from .trees import installed_package

REPLACED = {f"{MODELS}/{f}_eagle3.py" for f in ("llama", "qwen3", "deepseek")}
NUMBERS = {"two": 2, "three": 3, "four": 4, "five": 5}


@pytest.fixture(scope="module")
def made():
    return series.compute(vllm_tree.find(installed_package()))


@pytest.fixture(scope="module")
def stages(made):
    """Each commit, and all files that are there once it is made."""
    there: set[str] = set()
    found = []
    for commit in made.commits:
        there = there | commit.files.keys()
        found.append((commit, there))
    return found


def imported(path: str, text: str) -> Iterator[str]:
    """The modules that a file needs of the tree that it is in, as paths."""
    package = ".".join(PurePosixPath(path).parent.parts)
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom):
            name = "." * node.level + (node.module or "")
            module = importlib.util.resolve_name(name, package)
            if module.split(".")[0] in ("vllm", "tests"):
                yield module.replace(".", "/")


def test_what_its_files_import_is_there(stages):
    root = installed_package().parent
    for commit, there in stages:
        for path, text in commit.files.items():
            for module in imported(path, text):
                files = (f"{module}.py", f"{module}/__init__.py")
                if module.startswith("tests/"):
                    assert there.intersection(files), f"{path} needs {module}"
                    # Neighbours are found by the folder's being a package.
                    assert f"{PurePosixPath(path).parent}/__init__.py" in there
                else:
                    held = (there.intersection(files), (root / module).is_dir())
                    held += tuple((root / file).is_file() for file in files)
                    assert any(held), f"{path} needs {module}"


def test_each_file_comes_with_one_patch(made):
    """But for the three models: changed by the first, replaced by the last."""
    first, second, third = (set(commit.files) for commit in made.commits)
    assert first & third == REPLACED
    assert not second & (first | third)


def test_the_contract_rests_on_torch_alone(made):
    files = made.commits[1].files
    models = {path: text for path, text in files.items() if path.startswith(MODELS)}
    assert {Path(path).stem[:16] for path in models} == {"draft_vocabulary"}
    for path, text in models.items():
        needed = {f"{module}.py" for module in imported(path, text)}
        assert needed <= models.keys() | {"vllm/logger.py"}, path


def test_the_test_plan_can_be_followed(stages):
    for commit, there in stages:
        plan = re.findall(r"^pytest (\S+)$", commit.message, re.MULTILINE)
        assert len(plan) == 1
        tests = {path for path in commit.files if Path(path).name.startswith("test_")}
        meant = {path for path in there if f"{path}/".startswith(f"{plan[0]}/")}
        assert tests and tests <= meant
        assert plan[0] == TESTS or plan[0] in commit.files


def test_the_message_names_files_of_its_patch(made, stages):
    for commit, there in stages[1:]:
        named = set(re.findall(r"\b\w+\.py\b", commit.message))
        assert named & {Path(path).name for path in commit.files}
        present = {Path(path).name for path in there | made.base.keys()}
        assert named <= present
    said = re.search(r"and the (\w+) modules it imports", made.commits[1].message)
    models = [path for path in made.commits[1].files if path.startswith(MODELS)]
    assert said and NUMBERS[said[1]] == len(models) - 1

# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""The ledger of deviations has each hook and file, and its entries are complete."""

import ast
import re
from fnmatch import fnmatch
from pathlib import Path

import pytest

from vllm_eagle3 import overlay, subtree

LEDGER = Path(__file__).parents[2] / "docs" / "deviations.md"
ENTRIES = re.split(r"^### ", LEDGER.read_text(), flags=re.MULTILINE)[1:]
# What the overlay imports that changes nothing in vLLM.
TOOLS = {"subtree", "switches", "symbols", "versions"}


def hooks() -> set[str]:
    """The modules that the overlay imports, without the tools."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(Path(overlay.__file__).read_text())):
        if isinstance(node, ast.ImportFrom) and node.module == "vllm_eagle3":
            names |= {alias.name for alias in node.names}
    return {name for name in names if not name.startswith("__")} - TOOLS


def test_the_overlay_has_hooks():
    assert {"aliases", "greedy", "ranks", "rebind"} <= hooks()


@pytest.mark.parametrize("hook", sorted(hooks()))
def test_each_hook_of_the_overlay_is_in_an_entry(hook):
    assert any(f"`vllm_eagle3/{hook}.py`" in entry for entry in ENTRIES)


def test_each_file_of_the_subtree_is_named():
    patterns = re.findall(r"`([a-z0-9_*]+\.py)`", LEDGER.read_text())
    files = {path.name for path in subtree.models_folder().glob("*.py")}
    left = {file for file in files if not any(fnmatch(file, name) for name in patterns)}
    assert sorted(left) == []


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda text: text.splitlines()[0])
def test_an_entry_is_complete(entry):
    told = re.findall(r"^- \*\*([A-Za-z ]+):\*\* \S", entry, re.MULTILINE)
    assert told == ["Symptom", "Cause", "Here", "Upstream", "Can go when"]

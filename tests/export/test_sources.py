# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""What travels of the fork travels with all that it needs, or not at all."""

import pytest

from vllm_eagle3 import vllm_tree
from vllm_eagle3.export import mail, series, sources

from .trees import SOMEBODY

HELPERS = '''\
# SPDX-License-Identifier: Apache-2.0
"""What stays."""

import functools
import os
from contextlib import contextmanager, suppress
from pathlib import Path as Folder

import torch
from torch import nn

SIZE = 3


@contextmanager
def ready(folder: Folder):
    with suppress(OSError):
        yield nn.Linear(1, 2)


def staying():
    return torch.zeros(1), os.name, functools


@functools.cache
@suppress
def last():
    return ready
'''
TRAVELLING = '''\
"""What travels."""

from contextlib import contextmanager, suppress
from pathlib import Path as Folder

from torch import nn


@contextmanager
def ready(folder: Folder):
    with suppress(OSError):
        yield nn.Linear(1, 2)
'''
CACHED = '''\
"""What travels."""

import functools
from contextlib import suppress

SIZE = 3


@functools.cache
@suppress
def last():
    return ready
'''


@pytest.mark.parametrize(
    "parts, expected", [(("ready",), TRAVELLING), (("SIZE", "last"), CACHED)]
)
def test_a_part_travels_with_its_decorators_and_imports(parts, expected):
    lift = sources._Lift("helpers", "travelling", parts, "What travels.")
    assert sources._excerpt(HELPERS, lift) == expected


def test_a_part_that_is_gone_is_named():
    lift = sources._Lift("helpers", "travelling", ("ready", "gone"), "")
    with pytest.raises(ValueError, match="helpers does not define each of .*gone"):
        sources._excerpt(HELPERS, lift)


def test_a_fork_without_its_tests_makes_no_series(monkeypatch, tmp_path):
    """As pip installs it."""
    monkeypatch.setattr(sources.subtree, "models_folder", lambda: tmp_path / "a/b/c")
    with pytest.raises(ValueError, match="comes without its tests"):
        sources.Sources("")


def test_both_ends_of_the_series_are_looked_for_before_it_counts_as_applied(tree):
    found = vllm_tree.find(tree.root)
    for name in ("draft_vocabulary", "eagle3_head"):
        assert not series.is_applied(found)
        tree.model(name).touch()
    assert series.is_applied(found)


def test_what_git_cannot_do_is_said(tmp_path, monkeypatch):
    """Here a commit of nothing; half a series would be worse than none."""
    for name, value in SOMEBODY.items():
        monkeypatch.setenv(name, value)
    (tmp_path / "out").mkdir()
    commits = [mail.Commit("Nothing new", {"file": "text"})]
    with pytest.raises(ValueError, match="git commit failed"):
        mail.write({"file": "text"}, commits, tmp_path / "out", tmp_path)
    assert not list((tmp_path / "out").iterdir())

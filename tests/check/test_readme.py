# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""The README shows what the check prints today; the server's half is in tests/serve."""

import re
import shutil
from pathlib import Path

import pytest
from safetensors.torch import load_file, save_file

from tests.support.example import REPOSITORY, Models, models
from vllm_eagle3 import cli

__all__ = ["models"]

COMMAND = "vllm-eagle3 check my-draft --target target"


def test_the_report_in_the_readme_is_todays(
    models: Models,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
):
    draft = shutil.copytree(models.draft("reduced"), tmp_path / "my-draft")
    tensors = load_file(draft / "model.safetensors")
    tensors["d2t"][40] = 50_000
    save_file(tensors, draft / "model.safetensors", {"format": "pt"})
    (tmp_path / "target").symlink_to(models.target)
    monkeypatch.chdir(tmp_path)
    assert cli.main(COMMAND.split()[1:]) == 2
    readme = (REPOSITORY / "README.md").read_text(encoding="utf-8")
    shown = readme.partition(f"$ {COMMAND}\n")[2].partition("```")[0]
    seconds = re.compile(r"\d+\.\d s")
    assert seconds.sub("", capsys.readouterr().out) == seconds.sub("", shown)
    # The sentence that follows, of the server, is the report's.
    (error,) = re.findall(r"^error \(loading\): (.*)$", shown, re.MULTILINE)
    assert f"\nValueError: {error}\n" in readme

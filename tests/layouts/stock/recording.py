# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""Runs the tests of this folder's neighbours, and writes down each checkpoint's fate.

A process of its own for each vLLM: `python -m tests.layouts.stock.recording FILE`,
with `VLLM_EAGLE3_DISABLE=1` for stock.
"""

import dataclasses
import json
import os
import sys
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
import torch
from tqdm import tqdm

from tests.layouts import small
from tests.layouts.stock import outcomes
from tests.layouts.stock.outcomes import Case, Outcome

TESTS = (
    "test_public_drafts.py",
    "test_odd_vocabularies.py",
    "test_odd_configs.py",
    "test_odd_files.py",
    "test_contradictions.py",
)


_LONGEST = 200


class AnySentence(str):
    """In place of a refusal that was none; tests find in it whatever they look for."""

    def __contains__(self, _: object) -> bool:
        return True

    def startswith(self, *_: Any) -> bool:
        return True


class Recorder:
    """A plugin of pytest, and stand-ins for the two helpers that every test calls."""

    def __init__(self, file: Path) -> None:
        self._file = file.open("w")
        # pytest takes the standard streams.
        self._terminal = os.fdopen(os.dup(2), "w")
        self._item: Any = None
        self._bar: Any = None
        self.failed: list[str] = []

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        name = "stock" if os.environ.get("VLLM_EAGLE3_DISABLE") == "1" else "fork"
        total = len(session.items)
        self._bar = tqdm(desc=name, total=total, file=self._terminal, mininterval=1)

    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        self._item = item

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.failed.append(report.nodeid)
        if report.when == "teardown":
            self._bar.update()

    def pytest_sessionfinish(self) -> None:
        self._bar.close()
        self._file.close()

    def serve(self, checkpoint: Any, folder: Path) -> Any:
        """Stands in for `small.serve`."""
        outcome, detail, model = outcomes.of_sound(checkpoint, folder / "draft")
        self._write(True, outcome, detail)
        return model or mock.MagicMock()

    def refusal(self, checkpoint: Any, folder: Path) -> str:
        """Stands in for `small.refusal`."""
        outcome, detail = outcomes.of_faulty(checkpoint, folder / "draft")
        self._write(False, outcome, detail)
        is_fork = os.environ.get("VLLM_EAGLE3_DISABLE") != "1"
        return detail if is_fork and outcome is Outcome.REFUSED else AnySentence()

    def _write(self, is_sound: bool, outcome: Outcome, detail: str) -> None:
        name, parameters = _named(self._item)
        line = detail.strip().partition("\n")[0][:_LONGEST]
        case = Case(name, parameters, is_sound, outcome, line)
        print(json.dumps(dataclasses.asdict(case)), file=self._file, flush=True)


def title(test: str) -> str:
    """The name of a test in words."""
    return test.removeprefix("test_").replace("_", " ")


def _named(item: Any) -> tuple[str, str]:
    """The test and its parameters; of a public draft, the draft."""
    if item.path.name == "test_public_drafts.py":
        return item.callspec.params["recipe"].name, ""
    parameters = item.callspec.id if hasattr(item, "callspec") else ""
    return title(item.originalname), parameters


def main(arguments: list[str]) -> int:
    """Record; further arguments are pytest's."""
    # What nobody writes is not a number; else unwritten memory may hold zeros, which
    # a bias may as well.
    torch.use_deterministic_algorithms(True, warn_only=True)
    recorder = Recorder(Path(arguments[0]))
    folder = Path(small.__file__).parent
    with (
        mock.patch.object(small, "serve", recorder.serve),
        mock.patch.object(small, "refusal", recorder.refusal),
    ):
        pytest.main(
            [
                *("-q", "--tb=no", "--no-header", "-p", "no:cacheprovider"),
                *arguments[1:],
                *(str(folder / test) for test in TESTS),
            ],
            plugins=[recorder],
        )
    is_stock = os.environ.get("VLLM_EAGLE3_DISABLE") == "1"
    if recorder.failed and not is_stock:
        print("These tests fail:", *recorder.failed, sep="\n  ", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

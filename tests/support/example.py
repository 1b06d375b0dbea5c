# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""The example's models, built if they are missing, and access to its modules.

Fixtures; a `conftest.py` that wants them imports them.
"""

import importlib
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
EXAMPLE = REPOSITORY / "examples" / "smollm2_eagle3"

Example = Callable[[str], ModuleType]


@dataclass(frozen=True)
class Models:
    """Folders of the target and of its drafts."""

    folder: Path

    @property
    def target(self) -> Path:
        return self.folder / "target"

    def draft(self, vocabulary: str) -> Path:
        return self.folder / f"draft-{vocabulary}"


@pytest.fixture(scope="session")
def models() -> Models:
    """What `make drafts` builds."""
    for command in (["build_target.py"], ["build_draft.py", "--all"]):
        script, *options = command
        subprocess.run([sys.executable, EXAMPLE / script, *options], check=True)
    return Models(REPOSITORY / "build" / "smollm2")


@pytest.fixture
def example(monkeypatch: pytest.MonkeyPatch) -> Example:
    """Imports a module of the example, which is no package, as its scripts do."""
    monkeypatch.syspath_prepend(str(EXAMPLE))
    return importlib.import_module

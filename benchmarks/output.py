# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""Where the benchmarks of speed leave their reports, and in what form."""

import argparse
import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parents[1]
FOLDER = REPOSITORY / "build" / "bench"


def parser(
    description: str | None, *, folder: str, short: str
) -> argparse.ArgumentParser:
    """Returns the options that `make bench` hands on to each of its parts.

    Args:
        description: the benchmark's docstring.
        folder: what goes into the folder, for ``--help``.
        short: what is measured in the short form, for ``--help``.
    """
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--output", type=Path, default=FOLDER, help=f"folder for {folder}"
    )
    parser.add_argument("--short", action="store_true", help=short)
    return parser


def report(machine: Mapping[str, str], rows: Iterable[Any]) -> dict[str, Any]:
    """Returns what a reader needs to judge the rows or to repeat them.

    Args:
        machine: what they were measured on.
        rows: dataclasses.
    """
    return {"machine": dict(machine), "rows": [asdict(row) for row in rows]}


def write(folder: Path, name: str, content: Mapping[str, Any]) -> Path:
    """Writes a report, figures with six digits, and returns its path."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"{name}.json"
    file.write_text(json.dumps(_rounded(content), indent=1) + "\n")
    return file


def read(folder: Path, name: str) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((folder / f"{name}.json").read_text())
    return content


def _rounded(value: Any) -> Any:
    if isinstance(value, float):
        return float(f"{value:.6g}")
    if isinstance(value, Mapping):
        return {key: _rounded(one) for key, one in value.items()}
    if isinstance(value, list):
        return [_rounded(one) for one in value]
    return value

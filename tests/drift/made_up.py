# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""Trees of a few lines, for what no test should have to look for in a real one."""

import textwrap
from pathlib import Path


def write_tree(folder: Path, modules: dict[str, str]) -> Path:
    """Writes a package `vllm` of these files, named from it; returns its folder."""
    package = folder / "vllm"
    for name, text in ({"__init__.py": ""} | modules).items():
        path = package / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text))
    return package

# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""A copy of vLLM that a test can doctor."""

import os
import shutil
from pathlib import Path


class CopiedTree:
    """A folder ``vllm`` of links to the installed one, until a file is changed."""

    def __init__(self, stock: Path, folder: Path) -> None:
        self.package = folder / "vllm"
        ignored = shutil.ignore_patterns("__pycache__", "*.so")
        shutil.copytree(stock, self.package, ignore=ignored, copy_function=os.symlink)

    def replace(self, file: str, old: str, new: str) -> None:
        """Changes the first place in a file that reads ``old``."""
        text = (self.package / file).read_text()
        assert old in text, f"{file} has no {old!r} to doctor"
        self.write(file, text.replace(old, new, 1))

    def write(self, file: str, text: str) -> None:
        self.remove(file)
        (self.package / file).write_text(text)

    def remove(self, file: str) -> None:
        """Removes a file, or the link in its place; never the file it leads to."""
        (self.package / file).unlink(missing_ok=True)

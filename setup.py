# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""Puts the forked subtree into the wheel.

Everything else is declared in pyproject.toml. The subtree lies at upstream's
paths (``vllm/model_executor/models``) but must never be installed there, where
vLLM's own files are; so it travels as data of ``vllm_eagle3``.
"""

import shutil
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

SUBTREE = Path("vllm")
PACKAGE = "vllm_eagle3"


class BuildWithSubtree(build_py):
    """Copies the subtree beside the package's own modules.

    An editable installation needs no copy: it finds the subtree in the
    repository.
    """

    def run(self) -> None:
        if not self.editable_mode:
            # build/ may hold files of an earlier build that exist no more.
            shutil.rmtree(Path(self.build_lib) / PACKAGE, ignore_errors=True)
        super().run()
        if not self.editable_mode:
            self._copy_subtree()

    def get_source_files(self) -> list[str]:
        # So that the source distribution carries the subtree as well.
        return [*super().get_source_files(), *map(str, self._sources())]

    def _copy_subtree(self) -> None:
        for source in self._sources():
            target = Path(self.build_lib) / PACKAGE / source
            target.parent.mkdir(parents=True, exist_ok=True)
            self.copy_file(str(source), str(target))

    def _sources(self) -> list[Path]:
        return sorted(SUBTREE.rglob("*.py"))


setup(cmdclass={"build_py": BuildWithSubtree})

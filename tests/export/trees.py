# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""Trees of vLLM in git, as a maintainer has one: copied, committed, patched.

What runs in one runs as upstream's own tests would: the tree is what `vllm` is, and
nothing of this fork is loaded.
"""

import functools
import importlib.util
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from tools.vllm_tree import fetch

INSTALLED, FETCHED = "installed", "0.33.0"
HERE = Path(__file__).resolve().parent
SOMEBODY = {
    f"GIT_{role}_{part}": value
    for role in ("AUTHOR", "COMMITTER")
    for part, value in {"NAME": "A. Submitter", "EMAIL": "a@example.org"}.items()
}


def git(folder: Path, *arguments: str, **environment: str) -> str:
    """Runs git as somebody without settings of his own."""
    settings = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    done = subprocess.run(
        ["git", *arguments],
        cwd=folder,
        env=os.environ | settings | SOMEBODY | environment,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def installed_package() -> Path:
    """The folder vllm that is installed beside these tests."""
    spec = importlib.util.find_spec("vllm")
    assert spec is not None and spec.origin is not None
    return Path(spec.origin).parent


@functools.cache
def package(version: str) -> Path:
    """The folder vllm of a release, or what is installed; nothing may be changed."""
    return installed_package() if version == INSTALLED else fetch(version) / "vllm"


@dataclass(frozen=True)
class Tree:
    """A vLLM under git."""

    root: Path

    @classmethod
    def copy(cls, version: str, root: Path) -> "Tree":
        """Everything that Python reads, committed; compiled libraries beside it."""
        source = package(version)
        ignore = shutil.ignore_patterns("*.so", "__pycache__")
        shutil.copytree(source, root / "vllm", ignore=ignore)
        tree = cls(root)
        tree.commit()
        for library in source.glob("*.so"):
            (root / "vllm" / library.name).symlink_to(library)
        return tree

    @classmethod
    def light(cls, root: Path) -> "Tree":
        """The installed vLLM with model files that may be changed; quick to make.

        All else is linked and must not be written to.
        """
        source, folder = package(INSTALLED), root / "vllm"
        for part in ("", "model_executor"):
            (folder / part).mkdir(parents=True)
            for path in (source / part).iterdir():
                if path.name not in ("model_executor", "models", "__pycache__"):
                    (folder / part / path.name).symlink_to(path)
        models = Path("model_executor", "models")
        shutil.copytree(source / models, folder / models)
        return cls(root)

    def model(self, name: str) -> Path:
        return self.root / "vllm" / "model_executor" / "models" / f"{name}.py"

    def commit(self) -> None:
        git(self.root, "init", "--quiet")
        git(self.root, "add", "--all", "--force")
        git(self.root, "commit", "--quiet", "--message", "base")

    def apply(self, patches: list[Path]) -> None:
        git(self.root, "am", "--keep-non-patch", *map(str, patches))

    def pytest(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Runs tests of the tree, against the tree."""
        # vLLM's variable; else a build for GPUs finds no device that it could plan for.
        environment = os.environ | {
            "PYTHONPATH": f"{self.root}{os.pathsep}{HERE}",
            "VLLM_PLUGINS": "",
            "VLLM_TARGET_DEVICE": "cpu",
            # vLLM remembers what it knows of a class by its name, for one file at a
            # time: tests of the fork that run beside this would take turns with it.
            "VLLM_CACHE_ROOT": str(self.root.parent / "cache"),
        }
        options = ("-q", "-p", "no:cacheprovider", "-p", "upstream_run")
        options += ("--rootdir", str(self.root), "--import-mode", "importlib")
        return subprocess.run(
            [sys.executable, "-m", "pytest", *options, *arguments],
            cwd=self.root,
            env=environment,
            capture_output=True,
            text=True,
        )

# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""Runs what can run of the tests with another release of vLLM, on a CPU.

    make test-vllm VERSION=0.33.0

First the release is compared, as source, with what the fork rests on. Then the tests at
model level run with its Python files in place of the installed ones: config, registry,
loader, layers and proposers are the release's own. Its compiled kernels are for GPUs;
those of the installed vLLM stand in for them. No engine starts, and nothing is said
about attention, sampling and servers.
"""

import argparse
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(REPOSITORY))

from tools import vllm_tree  # noqa: E402

MODEL_LEVEL = (
    "tests/model_executor",
    "tests/layouts",
    "tests/check",
    "tests/plugins",
    "tests/drift",
)


def environment(tree: Path) -> dict[str, str]:
    """Returns the variables with which Python finds this vLLM, on a CPU."""
    return os.environ | {
        "PYTHONPATH": str(tree),
        "VLLM_TARGET_DEVICE": "cpu",  # vLLM's own variable
        # Compiled code of one version is no good for another.
        "VLLM_CACHE_ROOT": str(tree / "cache"),
    }


def beside_installed_kernels(tree: Path, folder: Path) -> Path:
    """Returns a copy of a release that has the installed vLLM's compiled libraries."""
    ignored = shutil.ignore_patterns("*.so", "__pycache__")
    for part in (tree / "vllm", *tree.glob("vllm*.dist-info")):
        target = folder / part.name
        shutil.copytree(part, target, ignore=ignored, copy_function=_link_or_copy)
    spec = importlib.util.find_spec("vllm")
    installed = Path(spec.origin).parent if spec and spec.origin else REPOSITORY
    for library in installed.glob("*.so"):
        (folder / "vllm" / library.name).symlink_to(library)
    return folder


def _link_or_copy(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except OSError:  # on another file system
        shutil.copy2(source, target)


def run(*command: str, tree: Path) -> int:
    return subprocess.run(
        [sys.executable, *command], cwd=REPOSITORY, env=environment(tree)
    ).returncode


def main() -> int:
    """Returns 0 if nothing has moved and all tests pass, 2 if there is no release."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("version", help="release of vLLM, such as 0.33.0")
    parser.add_argument("pytest", nargs="*", help="arguments for pytest")
    options = parser.parse_args()
    try:
        tree = vllm_tree.fetch(options.version)
    except (ValueError, OSError) as error:
        print(f"test_vllm: {error}.", file=sys.stderr)
        return 2
    drift = run("-m", "vllm_eagle3.cli", "drift", "--vllm", str(tree), tree=tree)
    if drift != 0:
        return drift
    selected = options.pytest or [*MODEL_LEVEL, "-n", "2", "--dist", "loadfile"]
    marks = ("-m", "not (engine or server)")
    vllm_tree.CACHE.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=vllm_tree.CACHE, prefix="running-") as scratch:
        runnable = beside_installed_kernels(tree, Path(scratch))
        return run("-m", "pytest", *marks, *selected, tree=runnable)


if __name__ == "__main__":
    sys.exit(main())

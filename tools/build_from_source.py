# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""Puts the fork into a checkout of vLLM and lets vLLM build itself.

    make build-from-source VLLM_SOURCE=~/vllm BUILD_PYTHON=~/vllm/.venv/bin/python

First the series of `vllm-eagle3 export-patch` becomes commits on the branch that is
checked out; a checkout that has them already stays as it is. Then pip builds a wheel of
the checkout. All that decides how is vLLM's: its `setup.py` and its variables, such as
`VLLM_TARGET_DEVICE`, `VLLM_USE_PRECOMPILED`, `TORCH_CUDA_ARCH_LIST` and `MAX_JOBS`,
which go through as they are. Needs nothing but Python, pip and git.
"""

import argparse
import shlex
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(REPOSITORY))

from vllm_eagle3 import vllm_tree  # noqa: E402
from vllm_eagle3.export import command as export_patch  # noqa: E402
from vllm_eagle3.export import series  # noqa: E402


@dataclass(frozen=True)
class Job:
    """What to build, and with what.

    Attributes:
        tree: The checkout.
        python: An interpreter whose environment has what vLLM's build asks for.
        wheels: Where the wheel goes.
        arguments: Further arguments for ``pip wheel``.
        dry_run: Say what would run, and change nothing.
    """

    tree: vllm_tree.VllmTree
    python: str
    wheels: Path
    arguments: tuple[str, ...]
    dry_run: bool

    def run(self) -> None:
        """Patches and builds.

        Raises:
            ValueError: if the tree is no checkout, has moved, or a step failed.
        """
        if series.is_applied(self.tree):
            print(f"{self.tree.root} has the fork's patches already.", flush=True)
        else:
            self._patch()
        build = [self.python, "-m", "pip", "wheel", "--no-deps"]
        build += ["--wheel-dir", str(self.wheels), *self.arguments]
        self._do([*build, str(self.tree.root)])
        if not self.dry_run:
            print(f"The wheel is in {self.wheels}; install it with pip.")

    def _patch(self) -> None:
        root = self.tree.root
        if not (root / ".git").exists():
            raise ValueError(f"{root} is no git checkout; clone vLLM, or run git init")
        with tempfile.TemporaryDirectory() as folder:
            patches = export_patch.export(self.tree, Path(folder))
            apply = ["git", "-C", str(root), "am"]
            try:
                self._do([*apply, "--keep-non-patch", *map(str, patches)])
            except ValueError:
                subprocess.run([*apply, "--abort"], capture_output=True)
                raise

    def _do(self, arguments: list[str]) -> None:
        print(f"$ {shlex.join(arguments)}", flush=True)
        if self.dry_run:
            return
        if subprocess.run(arguments).returncode != 0:
            raise ValueError(f"`{shlex.join(arguments[:4])} ...` failed, see above")


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("vllm", type=Path, help="a checkout of vLLM")
    parser.add_argument("--python", default="python3", help="what to build with")
    parser.add_argument(
        "--wheels", type=Path, default=REPOSITORY / "dist" / "vllm", metavar="DIR"
    )
    parser.add_argument(
        "--dry-run", action="store_true", help="only say what would run"
    )
    parser.add_argument(
        "--pip-arguments",
        default="",
        metavar="ARGS",
        help='further ones for pip wheel, as in --pip-arguments="--no-build-isolation"',
    )
    options = parser.parse_args()
    try:
        Job(
            vllm_tree.find(options.vllm),
            options.python,
            options.wheels.absolute(),
            tuple(shlex.split(options.pip_arguments)),
            options.dry_run,
        ).run()
    except (ValueError, OSError) as error:
        print(f"build-from-source: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())

# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""The sub-command: a tree of vLLM in, mails out."""

import argparse
import shutil
import tempfile
from pathlib import Path

from vllm_eagle3 import vllm_tree
from vllm_eagle3.export import mail, series

_EPILOG = """\
example:
  vllm-eagle3 export-patch --vllm ~/vllm --output patches
  cd ~/vllm && git am --keep-non-patch --signoff ~/patches/*.patch

Each patch stands alone: the regression tests with the smallest change that makes them
pass, then the draft vocabulary as a module, then the model files on it. A tree that
differs in what the patches rest on is refused with the names of what moved.
"""


def add_parser(commands: "argparse._SubParsersAction") -> None:
    """Adds the sub-command to the command line."""
    parser = commands.add_parser(
        "export-patch",
        help="write the fork as patches that `git am` applies to a vLLM",
        description=(
            "Computes, from your copy of vLLM, the patches that bring the fork's model "
            "files and tests into it, at upstream's paths, as mails for `git am`."
        ),
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--vllm",
        required=True,
        type=Path,
        metavar="PATH",
        help="a checkout, the site-packages that vLLM is in, or the folder vllm itself",
    )
    parser.add_argument(
        "--output",
        type=Path,
        default=Path("vllm-eagle3-patches"),
        metavar="DIR",
        help="a new or empty folder for the patches (default: %(default)s)",
    )
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Writes the series and says what to do with it."""
    tree = vllm_tree.find(options.vllm)
    written = export(tree, options.output)
    print(f"Against {tree.label} in {tree.root}:")
    for path in written:
        print(f"  {path}")
    print("In a git checkout of it, apply them with")
    print(f"  git am --keep-non-patch --signoff {options.output.absolute()}/*.patch")
    return 0


def export(tree: vllm_tree.VllmTree, output: Path) -> list[Path]:
    """Writes the series against ``tree`` into ``output``: all of it or nothing.

    Raises:
        ValueError: ``output`` is in use, the tree has moved, or git cannot work.
    """
    if output.exists() and (not output.is_dir() or any(output.iterdir())):
        raise ValueError(f"{output} is not an empty folder; name another for --output")
    made = series.compute(tree)
    with tempfile.TemporaryDirectory(prefix="vllm-eagle3-patches-") as folder:
        mail.write(made.base, made.commits, Path(folder), tree.root)
        output.mkdir(parents=True, exist_ok=True)
        return [
            Path(shutil.copy(path, output)) for path in sorted(Path(folder).iterdir())
        ]

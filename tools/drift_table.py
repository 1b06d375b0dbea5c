# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""Derives anew what `vllm-eagle3 drift` compares with, from source alone.

    make drift-table

reads this fork's source, and the trees of all vLLM versions that it supports, which are
fetched where they are missing. Run it when the fork uses something else of vLLM, and
when a version is added to `vllm_eagle3/versions.py`.
"""

import sys
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(REPOSITORY))

from tools import vllm_tree  # noqa: E402
from vllm_eagle3 import versions  # noqa: E402
from vllm_eagle3.drift import table  # noqa: E402
from vllm_eagle3.drift.tree import Tree  # noqa: E402


def main() -> int:
    """Writes the table; returns 2 if a tree is not to be had or lacks something."""
    try:
        trees = {
            version: Tree(vllm_tree.fetch(version) / "vllm")
            for version in versions.SUPPORTED_VLLM
        }
        derived = table.derive(trees)
    except ValueError as error:
        print(f"drift_table: error: {error}", file=sys.stderr)
        return 2
    derived.save()
    print(f"{table.FILE}: {len(derived.entries)} entries, from vLLM {', '.join(trees)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())

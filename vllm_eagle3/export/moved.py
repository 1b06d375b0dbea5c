# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""What speaks against the series on a tree of vLLM.

The series replaces three files as a whole, and its own files rest on others. Whatever
upstream has changed there since would be lost, or break them, without a word; so the
drift table's findings about the model files are refused by name.
"""

from collections.abc import Iterable

from vllm_eagle3.drift.compare import Finding, compare
from vllm_eagle3.drift.module import Unreadable
from vllm_eagle3.drift.rests import REFERENCES
from vllm_eagle3.vllm_tree import VllmTree

_SUBTREE = "vllm/"
# The fork's tests compare with these; no file of the series rests on them.
_BESIDE = frozenset(rest.name for rest in REFERENCES)


def problems(tree: VllmTree, new: Iterable[str]) -> list[str]:
    """Names what moved, and what is in the way.

    Args:
        new: Files that the series adds, from the root of the tree.

    Returns:
        A phrase for each; none where the series can be made.
    """
    try:
        found = [f"{f.name}: {f.what}" for f in compare(tree.package) if _matters(f)]
    except Unreadable as error:
        return [str(error)]
    present = sorted(path for path in new if (tree.root / path).exists())
    return found + [f"{path} is there already" for path in present]


def _matters(finding: Finding) -> bool:
    touches = any(file.startswith(_SUBTREE) for file in finding.files)
    return touches and finding.name not in _BESIDE

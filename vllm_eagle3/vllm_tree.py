# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""vLLM as files to read: a checkout, an unpacked release, or what is installed."""

import re
from dataclasses import dataclass
from pathlib import Path

_VERSION_LINE = re.compile(r"^__version__\s*=.*?['\"]([^'\"]+)['\"]", re.MULTILINE)
# Also in a checkout, where nothing has been generated yet.
_TELLTALE = Path("model_executor", "models", "registry.py")


@dataclass(frozen=True)
class VllmTree:
    """Files of some vLLM; nothing of them is imported or changed.

    Attributes:
        root: The folder that holds ``vllm/``, and in a checkout ``tests/`` and more.
        version: As its build wrote it, or None in a checkout that was never built.
    """

    root: Path
    version: str | None

    @property
    def package(self) -> Path:
        return self.root / "vllm"

    @property
    def label(self) -> str:
        return f"vLLM {self.version}" if self.version else "a vLLM without a version"

    def read(self, path: str) -> str:
        """Returns the text of a file below ``root``, its line ends as they are.

        Raises:
            OSError: if there is no such file.
        """
        return (self.root / path).read_bytes().decode("utf-8")


def find(path: Path) -> VllmTree:
    """Finds the vLLM that ``path`` means.

    Args:
        path: A checkout, a ``site-packages`` folder, or a folder ``vllm`` itself.

    Raises:
        ValueError: if there is none.
    """
    path = path.expanduser().resolve()
    for root in (path, path.parent):
        package = root / "vllm"
        # The fork's own subtree has no __init__.py.
        stands = (package / "__init__.py").is_file() and (package / _TELLTALE).is_file()
        if stands and (root == path or package == path):
            return VllmTree(root, _version(package))
    raise ValueError(
        f"{path} holds no vLLM; name a checkout, the site-packages folder that vLLM is "
        "installed in, or the folder vllm itself"
    )


def _version(package: Path) -> str | None:
    file = package / "_version.py"
    found = _VERSION_LINE.search(file.read_text("utf-8")) if file.is_file() else None
    return found.group(1) if found else None

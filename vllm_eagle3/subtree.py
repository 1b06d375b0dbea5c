# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""Where the fork's model files lie, and which of vLLM's files they replace."""

from pathlib import Path

PACKAGE = "vllm.model_executor.models"
REPLACED = ("llama_eagle3", "qwen3_eagle3", "deepseek_eagle3")
REPLACED_MODULES = tuple(f"{PACKAGE}.{name}" for name in REPLACED)

_RELATIVE = Path(*PACKAGE.split("."))


def models_folder() -> Path:
    """Returns the folder of the fork's model files.

    A wheel carries the subtree inside this package; in a repository (and so in
    an editable installation) it lies beside this package.

    Raises:
        FileNotFoundError: if neither layout is found.
    """
    package_folder = Path(__file__).resolve().parent
    carried = package_folder / _RELATIVE
    if carried.is_dir():
        return carried
    beside = package_folder.parent / _RELATIVE
    # Beside an installed package lies site-packages/vllm, which is stock; only
    # the fork's subtree has no __init__.py.
    if beside.is_dir() and not (beside / "__init__.py").exists():
        return beside
    raise FileNotFoundError(
        f"the fork's model files were found neither in {carried} nor in {beside}; "
        "reinstall vllm-eagle3"
    )


def module_names(folder: Path) -> set[str]:
    """Returns the names of the modules that ``folder`` holds."""
    return {path.stem for path in folder.glob("*.py")} - {"__init__"}

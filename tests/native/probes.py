# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""What runs in a process in which no plugin has been loaded yet.

The fork's model files cannot be imported there before the plugin is, so nothing here
imports them at module level.
"""

from pathlib import Path
from typing import Any
from unittest import mock

import torch
from torch.utils._python_dispatch import TorchDispatchMode


class Calls(TorchDispatchMode):
    """Records the names of all operators that run."""

    def __init__(self) -> None:
        super().__init__()
        self.names: set[str] = set()

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        self.names.add(func.name())
        return func(*args, **(kwargs or {}))


def native_calls(dtype: torch.dtype = torch.float32) -> set[str]:
    """Which native operators run when the fork's two functions are called."""
    from vllm.model_executor.models import draft_vocabulary_ops as operators

    logits, ids = torch.zeros(2, 8, dtype=dtype), torch.arange(8)
    with Calls() as calls:
        operators.widen_draft_logits(logits, ids, operators.inverse_ids(ids, 16))
        operators.draft_argmax_to_target(logits, ids)
    return {name for name in calls.names if name.startswith("vllm_eagle3::")}


def load_plugin() -> tuple[str, set[str]]:
    """What the plugin says of the operators, and which of them run."""
    from vllm.plugins import load_general_plugins

    from vllm_eagle3 import native

    load_general_plugins()
    return str(native.load()), native_calls()


def load_plugin_with_libraries_in(folder: Path) -> tuple[str, set[str]]:
    """The same, as if the libraries lay in another folder."""
    from vllm_eagle3 import native

    with mock.patch.object(native, "__file__", str(folder / "native.py")):
        return load_plugin()


def status_text() -> str:
    from vllm_eagle3 import status

    return status.describe(status.inspect_environment())

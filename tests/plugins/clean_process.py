# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""What runs inside a process in which no plugin has been loaded yet.

Nothing here may import vllm_eagle3 or vLLM's model code at module level: some
tests are about the order in which these are imported.
"""

import importlib
import importlib.util
import logging
import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

Probe = Callable[..., Any]
CleanVllm = Callable[..., Any]

MODELS = "vllm.model_executor.models"
FAMILIES = ("llama_eagle3", "qwen3_eagle3", "deepseek_eagle3")


def call(environment: Mapping[str, str], function: Probe, *arguments: Any) -> Any:
    """Calls ``function`` with ``environment`` added to the process's own."""
    # pytest's own process may have logged the line already.
    os.environ.pop("_VLLM_EAGLE3_ANNOUNCED", None)
    os.environ.update(environment)
    return function(*arguments)


class LogLines(logging.Handler):
    """Collects what is logged through vLLM, as ``LEVEL message``."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(f"{record.levelname} {record.getMessage()}")

    @classmethod
    def attach(cls) -> "LogLines":
        """Starts collecting, as if vLLM had set up its logging just now."""
        handler = cls()
        vllm_logger = logging.getLogger("vllm")
        vllm_logger.addHandler(handler)
        vllm_logger.setLevel(logging.INFO)
        return handler

    def about_the_overlay(self) -> list[str]:
        return [line for line in self.lines if "vllm-eagle3" in line]


def resolved_folders() -> set[str]:
    """Returns the folders that the three family modules are found in.

    Finding is what importing does first; to import them would cost seconds.
    """
    specs = [importlib.util.find_spec(f"{MODELS}.{name}") for name in FAMILIES]
    return {str(Path(spec.origin or "").parent) for spec in specs if spec}


def stock_folder() -> str:
    spec = importlib.util.find_spec("vllm")
    assert spec is not None and spec.origin is not None
    return str(Path(spec.origin).parent / "model_executor" / "models")


def load_plugins() -> dict[str, Any]:
    """Loads the plugins as vLLM does; tells what resolves where and what was logged."""
    from vllm.plugins import load_general_plugins

    log = LogLines.attach()
    load_general_plugins()
    registry = importlib.import_module(f"{MODELS}.registry")
    return {
        "folders": resolved_folders(),
        "stock": stock_folder(),
        "log": log.about_the_overlay(),
        "architectures": set(registry.ModelRegistry.models),
        "search_path": list(sys.modules[MODELS].__path__),
    }

# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""A vLLM in which a draft can be built: quiet, without a device, one rank.

What is changed lasts for this process, which does nothing else.
"""

import contextlib
import logging
import os
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

from vllm_eagle3.check.report import Seconds

_ENVIRONMENT = {
    "VLLM_LOGGING_LEVEL": "ERROR",
    "VLLM_NO_USAGE_STATS": "1",
    "TOKENIZERS_PARALLELISM": "false",
}


class Clock:
    """Tells the time of imports from that of the check itself."""

    def __init__(self) -> None:
        self._begin = time.perf_counter()
        self._imports = 0.0

    @contextlib.contextmanager
    def importing(self) -> Iterator[None]:
        begin = time.perf_counter()
        try:
            yield
        finally:
            self._imports += time.perf_counter() - begin

    def read(self) -> Seconds:
        total = time.perf_counter() - self._begin
        return Seconds(self._imports, total - self._imports)


def import_vllm(clock: Clock) -> None:
    """Import everything slow, and load vLLM's plugins as a server does.

    Raises:
        ValueError: there is no vLLM here, or a server would not use the fork's files.
    """
    for name, value in _ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    with captured_logs(), clock.importing():
        try:
            _platform_without_devices()
            from vllm.plugins import load_general_plugins

            load_general_plugins()
        except ImportError as error:
            raise ValueError(
                f"vLLM cannot be imported here ({error}). The check runs vLLM's own "
                "code: install it in the environment of the server, and see "
                "`vllm-eagle3 status`."
            ) from error
        _require_overlay()
        from vllm_eagle3.check import vllm_modules  # noqa: F401


def _platform_without_devices() -> None:
    """Where vLLM finds no device that it was built for, plan as for a CPU."""
    from vllm import platforms

    if platforms.current_platform.is_unspecified():
        from vllm.platforms.cpu import CpuPlatform

        platforms.current_platform = CpuPlatform()


def _require_overlay() -> None:
    from vllm_eagle3 import overlay

    outcome = overlay.outcome()
    if not outcome.active:
        raise ValueError(
            "vllm-eagle3 is inactive here, so a server would use vLLM's own EAGLE-3 "
            f"files, of which this check knows nothing: {outcome.reason}."
        )


class _Collector(logging.Handler):
    def __init__(self, records: list[logging.LogRecord]) -> None:
        super().__init__(logging.INFO)
        self._records = records

    def emit(self, record: logging.LogRecord) -> None:
        self._records.append(record)


@contextlib.contextmanager
def captured_logs() -> Iterator[list[logging.LogRecord]]:
    """Within, vLLM's log records go to the list and nowhere else."""
    logger = logging.getLogger("vllm")
    records: list[logging.LogRecord] = []
    handler = _Collector(records)
    before = logger.handlers, logger.level, logger.propagate
    logger.handlers, logger.propagate = [handler], False
    logger.setLevel(logging.INFO)
    try:
        yield records
    finally:
        logger.handlers, logger.propagate = before[0], before[2]
        logger.setLevel(before[1])


def logging_as_it_is() -> Any:
    """For `EngineArgs`, which would set vLLM's loggers up anew.

    What is logged from there on, such as a draft's warnings, would not be captured.
    """
    from vllm.config.logging import LoggingConfig

    return LoggingConfig(configure_logging=False, pylogging_config_file=None)


def is_ours(record: logging.LogRecord) -> bool:
    """Whether the fork logged this, and not vLLM."""
    from vllm_eagle3 import subtree

    folders = {subtree.models_folder(), Path(__file__).resolve().parent.parent}
    return Path(record.pathname).resolve().parent in folders


@contextlib.contextmanager
def one_rank(vllm_config: Any) -> Iterator[None]:
    """What a worker has around it while it loads a model, without an accelerator."""
    from vllm.config import set_current_vllm_config

    with (
        set_current_vllm_config(vllm_config),
        mock.patch("torch.accelerator.empty_cache"),
    ):
        _process_group()
        yield


def _process_group() -> None:
    from vllm.distributed import (
        init_distributed_environment,
        initialize_model_parallel,
        model_parallel_is_initialized,
    )

    if model_parallel_is_initialized():
        return
    store = Path(tempfile.mkdtemp(prefix="vllm-eagle3-check-")) / "store"
    init_distributed_environment(
        world_size=1,
        rank=0,
        local_rank=0,
        distributed_init_method=f"file://{store}",
        backend="gloo",
    )
    initialize_model_parallel(1)


@contextlib.contextmanager
def inspected_in_process(clock: Clock) -> Iterator[None]:
    """Within, vLLM learns about a model class by importing it here.

    It would start another process, to keep CUDA out of this one; there is none, and
    the class is needed anyway.
    """
    from vllm.model_executor.models import registry

    def inspect(self: Any) -> Any:
        with clock.importing():
            model_class = self.load_model_cls()
        return registry._ModelInfo.from_model_cls(model_class)

    with mock.patch.object(registry._LazyRegisteredModel, "inspect_model_cls", inspect):
        yield

# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""Every process of vLLM resolves the EAGLE-3 modules to the fork's files."""

import importlib
import multiprocessing
import sys
from pathlib import Path
from unittest.mock import MagicMock, PropertyMock

import pytest

from tests.plugins.clean_process import FAMILIES, MODELS, load_plugins, resolved_folders

FORK = str(Path(__file__).resolve().parents[2] / "vllm" / "model_executor" / "models")


def api_server(model: str) -> set[str]:
    """What the API server does first: it makes the engine's arguments."""
    from vllm.engine.arg_utils import AsyncEngineArgs

    AsyncEngineArgs(model=model)
    return resolved_folders()


class ReachedExecutor(Exception):
    """The engine core came as far as starting its executor."""


def _stop(vllm_config: object) -> None:
    raise ReachedExecutor


def engine_core() -> set[str]:
    """Starts vLLM's engine core, up to the point where it makes its executor."""
    from vllm.v1.engine.core import EngineCore

    with pytest.raises(ReachedExecutor):
        EngineCore(MagicMock(), executor_class=_stop, log_stats=False)
    return resolved_folders()


class ReachedWorker(Exception):
    """vLLM's worker wrapper came as far as asking which class a worker has."""


def worker() -> set[str]:
    """Starts vLLM's worker wrapper, up to the point where it makes the worker."""
    from vllm.v1.worker.worker_base import WorkerWrapperBase

    vllm_config = MagicMock()
    worker_class = PropertyMock(side_effect=ReachedWorker)
    type(vllm_config.parallel_config).worker_cls = worker_class
    with pytest.raises(ReachedWorker):
        WorkerWrapperBase().init_worker([{"vllm_config": vllm_config}])
    return resolved_folders()


def test_the_api_server_runs_the_fork(clean_vllm, tmp_path):
    (tmp_path / "config.json").write_text('{"model_type": "llama"}')
    assert clean_vllm(api_server, str(tmp_path)) == {FORK}


def test_the_engine_core_runs_the_fork(clean_vllm):
    assert clean_vllm(engine_core) == {FORK}


def test_a_worker_runs_the_fork(clean_vllm):
    assert clean_vllm(worker) == {FORK}


def test_a_spawned_process_runs_the_fork():
    context = multiprocessing.get_context("spawn")
    with context.Pool(1) as pool:
        assert pool.apply(load_plugins)["folders"] == {FORK}


def test_the_process_that_inspects_models_runs_the_fork():
    # vLLM starts `python -m vllm.model_executor.models.registry` for this.
    registry = importlib.import_module(f"{MODELS}.registry")
    assert registry._run_in_subprocess(resolved_folders) == {FORK}


def test_the_proposers_isinstance_checks_name_the_forks_classes():
    proposer = importlib.import_module("vllm.v1.spec_decode.llm_base_proposer")
    classes = {
        "llama_eagle3": proposer.Eagle3LlamaForCausalLM,
        "qwen3_eagle3": proposer.Eagle3Qwen3ForCausalLM,
        "deepseek_eagle3": proposer.Eagle3DeepseekV2ForCausalLM,
    }
    for family in FAMILIES:
        module = importlib.import_module(f"{MODELS}.{family}")
        assert getattr(module, classes[family].__name__) is classes[family]
        assert module.__file__ == f"{FORK}/{family}.py"


def test_activation_imports_no_layer_and_no_draft_and_leaves_the_gpu_alone(clean_vllm):
    imported, cuda_initialised = clean_vllm(activation_imports)
    assert not cuda_initialised
    assert [name for name in imported if name.startswith(HEAVY)] == []


HEAVY = (
    "vllm.model_executor.layers.",
    *(f"{MODELS}.{family}" for family in FAMILIES),
    f"{MODELS}.eagle3",
    f"{MODELS}.llama",
)


def activation_imports() -> tuple[set[str], bool]:
    """Returns what loading the plugins imports, and whether it started CUDA."""
    import torch
    from vllm.plugins import load_general_plugins

    before = set(sys.modules)
    load_general_plugins()
    return set(sys.modules) - before, torch.cuda.is_initialized()

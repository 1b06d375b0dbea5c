# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""Starts one vLLM engine on a synthetic pair and reports what it did."""

import gc
import importlib
import inspect
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from .attention import MAX_MODEL_LEN
from .cases import PLAIN, Group, Run
from .checkpoints import write_draft, write_target
from .language import NUM_SPECULATIVE_TOKENS
from .simulation import Counts, Request

if TYPE_CHECKING:
    from vllm import LLM

# Asked for in every process: the files that the overlay replaces.
MODELS = "vllm.model_executor.models"
DRAFT_MODULES = tuple(
    f"{MODELS}.{name}" for name in ("llama_eagle3", "qwen3_eagle3", "deepseek_eagle3")
)


@dataclass(frozen=True)
class Report:
    """What one engine did; plain data, so that it survives a trip through JSON.

    Attributes:
        name: The run's name.
        started: Whether the engine came up.
        error: What went wrong, as ``Type: text``; empty if nothing did.
        outputs: Generated token ids, one list per request.
        counts: Speculation counters as a dict, or None without speculation.
        processes: Per process what ``describe_process`` saw; the first is the one
            that holds the ``LLM`` object, the others are its workers.
    """

    name: str
    started: bool
    error: str
    outputs: list[list[int]]
    counts: dict[str, Any] | None
    processes: list[dict[str, Any]]


def run_engine(run: Run, group: Group, folder: Path) -> Report:
    """Start an engine, generate, and take it down again.

    Args:
        run: Which pair.
        group: Settings and prompts.
        folder: Where checkpoints are written.
    """
    from vllm.distributed import cleanup_dist_env_and_memory

    llm = None
    try:
        llm = _start(run, group, folder)
        outputs = _generate(llm, group.requests)
        counts = None if run.draft == PLAIN else asdict(_read_counts(llm))
        processes = [describe_process(), *llm.collective_rpc(describe_process)]
        return Report(run.name, True, "", outputs, counts, processes)
    except Exception as error:
        # The other engines of the group shall run; the tests judge this one.
        text = f"{type(error).__name__}: {error}"
        return Report(run.name, llm is not None, text, [], None, [])
    finally:
        if llm is not None:
            llm.llm_engine.engine_core.shutdown()
        del llm
        gc.collect()
        cleanup_dist_env_and_memory()


def describe_process(worker: Any = None) -> dict[str, Any]:
    """Tell which draft files this process resolves to.

    Args:
        worker: vLLM's worker object, where this process has one.
    """
    description: dict[str, Any] = {
        "pid": os.getpid(),
        "modules": {
            name: importlib.import_module(name).__file__ for name in DRAFT_MODULES
        },
    }
    if worker is not None:
        description["runner"] = type(worker.model_runner).__module__
        description |= _describe_draft(worker.model_runner)
    return description


def _describe_draft(runner: Any) -> dict[str, Any]:
    # The first runner and the second have different names for it.
    for name in ("drafter", "speculator"):
        drafter = getattr(runner, name, None)
        if drafter is not None:
            return {
                "draft_file": inspect.getfile(type(drafter.model)),
                "local_argmax": drafter.use_local_argmax_reduction,
                "native": _native_operators(),
                # Set by vLLM when the compiled code has run for the first time.
                "compiled": getattr(drafter.model.model, "compiled", False),
            }
    return {}


def _native_operators() -> list[str]:
    """Which of the two run natively on a CPU in this process."""
    operators = importlib.import_module(f"{MODELS}.draft_vocabulary_ops")
    return [
        name
        for name in ("draft_argmax_to_target", "widen_draft_logits")
        if operators._is_native(name, torch.zeros(1, 1))
    ]


def _start(run: Run, group: Group, folder: Path) -> "LLM":
    from vllm import LLM

    target = write_target(run.family, folder / run.family / "target")
    options: dict[str, Any] = {}
    if run.family == "deepseek":
        # The other CPU backend for MLA computes in bfloat16 only.
        options["attention_backend"] = "CPU_MLA"
    speculative_config = None
    if run.draft != PLAIN:
        draft = write_draft(run.family, run.draft, folder / run.family / run.draft)
        speculative_config = options | {
            "method": "eagle3",
            "model": str(draft),
            "num_speculative_tokens": NUM_SPECULATIVE_TOKENS,
        }
        if run.whole_logits:
            speculative_config["use_local_argmax_reduction"] = False
    return LLM(
        model=str(target),
        speculative_config=speculative_config,
        skip_tokenizer_init=True,
        dtype="float32",
        max_model_len=MAX_MODEL_LEN,
        max_num_seqs=group.request_count,
        tensor_parallel_size=group.tensor_parallel,
        enforce_eager=group.eager,
        enable_prefix_caching=False,
        disable_log_stats=False,
        **options,
    )


def _generate(llm: "LLM", requests: Sequence[Request]) -> list[list[int]]:
    from vllm import SamplingParams, TokensPrompt

    answers = llm.generate(
        [TokensPrompt(prompt_token_ids=list(r.prompt)) for r in requests],
        [
            SamplingParams(
                temperature=0.0,
                max_tokens=request.max_tokens,
                ignore_eos=True,
                detokenize=False,
            )
            for request in requests
        ],
        use_tqdm=False,
    )
    return [list(answer.outputs[0].token_ids) for answer in answers]


def _read_counts(llm: "LLM") -> Counts:
    """The counters since the engine started: vLLM makes new ones for each engine."""
    metrics = {metric.name: metric for metric in llm.get_metrics()}

    def value(name: str) -> Any:
        metric: Any = metrics[f"vllm:spec_decode_{name}"]
        return metric.value if hasattr(metric, "value") else tuple(metric.values)

    return Counts(**{name: value(name) for name in Counts.__dataclass_fields__})

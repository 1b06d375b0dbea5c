# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""Starts one vLLM engine, asks it the questions, and reads its counters."""

import gc
import inspect
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import remap
from .results import COUNTERS, RowResult, answered
from .rows import SPEC_TOKENS, Form, Row

if TYPE_CHECKING:
    from vllm import LLM

MAX_MODEL_LEN = 512
Prompts = Sequence[Sequence[int]]


def run_row(
    row: Row, form: Form, models: Path, prompts: Prompts, bar: Callable[..., Any]
) -> RowResult:
    """Starts an engine, generates, and takes it down again.

    Args:
        row: Which engine.
        form: Lengths.
        models: Folder with `target` and the drafts.
        prompts: Token ids of each question.
        bar: Makes a progress bar, as `tqdm` does.
    """
    from vllm.distributed import cleanup_dist_env_and_memory

    started = time.monotonic()
    found: dict[str, Any] = {}
    llm = None
    try:
        llm = start(row, form, models)
        if row.remapped:
            llm.collective_rpc(remap.force)
        found |= answered(generate(llm, prompts, form, bar))
        found["counts"] = {} if row.draft == "none" else read_counts(llm)
        found["engine"] = llm.collective_rpc(describe)[0]
    except Exception as error:
        # The other rows shall run; the checks judge this one.
        found = {"error": f"{type(error).__name__}: {error}"}
    finally:
        if llm is not None:
            llm.llm_engine.engine_core.shutdown()
        del llm
        gc.collect()
        cleanup_dist_env_and_memory()
    return RowResult(row, form, round(time.monotonic() - started, 1), **found)


def start(row: Row, form: Form, models: Path) -> "LLM":
    """Starts the engine of a row.

    In float32: how many tokens a step computes at a time changes the last bits of the
    logits, and in float32 these decide no token.
    """
    from vllm import LLM

    return LLM(
        model=str(models / "target"),
        speculative_config=speculation(row, models),
        dtype="float32",
        max_model_len=MAX_MODEL_LEN,
        max_num_seqs=form.sequences,
        enforce_eager=True,
        enable_prefix_caching=False,
        disable_log_stats=False,
        skip_tokenizer_init=True,
    )


def speculation(row: Row, models: Path) -> dict[str, Any] | None:
    """Returns vLLM's speculative config for a row."""
    if row.draft == "none":
        return None
    config: dict[str, Any] = {
        "method": "eagle3",
        "model": str(models / f"draft-{row.draft}"),
        "num_speculative_tokens": SPEC_TOKENS,
    }
    if row.remapped:
        # The remap is a matter of whole logits, so these must be asked for.
        config["use_local_argmax_reduction"] = False
    return config


def generate(
    llm: "LLM", prompts: Prompts, form: Form, bar: Callable[..., Any]
) -> list[list[int]]:
    """Returns the token ids of each answer at temperature 0."""
    from vllm import SamplingParams, TokensPrompt

    answers = llm.generate(
        [TokensPrompt(prompt_token_ids=list(prompt)) for prompt in prompts],
        SamplingParams(
            temperature=0.0,
            max_tokens=form.max_tokens,
            stop_token_ids=[llm.model_config.hf_config.eos_token_id],
            detokenize=False,
        ),
        use_tqdm=bar,
    )
    return [list(answer.outputs[0].token_ids) for answer in answers]


def read_counts(llm: "LLM") -> dict[str, Any]:
    """Returns the counters since the engine started; each engine makes new ones."""
    metrics = {metric.name: metric for metric in llm.get_metrics()}

    def value(name: str) -> Any:
        metric: Any = metrics[f"vllm:spec_decode_{name}"]
        return metric.value if hasattr(metric, "value") else list(metric.values)

    return {name: value(name) for name in COUNTERS}


def describe(worker: Any) -> dict[str, Any]:
    """Tells what runs in the worker: which runner, whose draft, which remap."""
    import vllm

    description: dict[str, Any] = {
        "runner": "v2" if hasattr(worker.model_runner, "speculator") else "v1"
    }
    model = remap.draft_model(worker)
    if model is not None:
        stock = Path(vllm.__file__).resolve().parent
        file = Path(inspect.getfile(type(model))).resolve()
        description |= {
            "implementation": "stock" if stock in file.parents else "fork",
            "own_remap": model.draft_id_to_target_id is not None,
            "forced_remaps": remap.forced_remaps(worker),
            "local_argmax": (
                worker.vllm_config.speculative_config.use_local_argmax_reduction
            ),
        }
    return description

# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""A server's way to a loaded draft, walked without weights: its errors, its warnings.

1. config: `EngineArgs` to `VllmConfig`, as the API server makes it.
2. construction: the draft class, on the meta device.
3. loading: vLLM's default loader, over headers (`headers.py`).
4. proposer: what the V1 runner asks of a P-EAGLE draft's config.

A stage that fails ends the walk, as it ends a server; what the later rules would have
said is gathered by `beyond.py`.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, TypeVar
from unittest import mock

import torch

from vllm_eagle3.check import headers, kernels, runtime
from vllm_eagle3.check.report import Finding, Severity, Stage

T = TypeVar("T")


@dataclass
class DryRun:
    """How far the walk came, and what was said on the way.

    Attributes:
        config: the engine's, as a draft sees it; `None` if a server would not make it.
        model: the draft on the meta device; `None` if it could not be built.
        loaded: whether the loader took the whole checkpoint.
        findings: errors as the server words them, warnings as it logs them.
    """

    config: Any = None
    model: Any = None
    loaded: bool = False
    findings: list[Finding] = field(default_factory=list)

    def note(self, message: str) -> None:
        """Say what could not be judged here."""
        self.findings.append(Finding(Severity.NOTE, Stage.CONSTRUCTION, message))

    @property
    def draft_config(self) -> Any:
        """vLLM's `ModelConfig` of the draft."""
        return self.config.speculative_config.draft_model_config


def walk(
    draft: str,
    target: str,
    speculative: dict[str, Any],
    clock: runtime.Clock,
    **engine: Any,
) -> DryRun:
    """Do what a server does with a draft, as far as it goes.

    Args:
        draft: folder with the checkpoint.
        target: folder with the target's config.
        speculative: as in `--speculative-config`, without `model`.
        clock: gets the time of imports on the way.
        engine: further arguments of vLLM's `EngineArgs`.
    """
    run = DryRun()
    with runtime.captured_logs() as records, runtime.inspected_in_process(clock):
        run.config = _attempt(
            run,
            Stage.CONFIG,
            lambda: engine_config(draft, target, speculative, **engine),
        )
        if run.config is not None:
            with runtime.one_rank(run.config):
                run.model = _attempt(run, Stage.CONSTRUCTION, lambda: _construct(run))
                if run.model is not None:
                    run.loaded = bool(_attempt(run, Stage.LOADING, lambda: _load(run)))
            if run.loaded:
                _attempt(run, Stage.PROPOSER, lambda: _propose(run))
    run.findings += [
        Finding(Severity.WARNING, Stage.LOADING, record.getMessage())
        for record in records
        if record.levelname == "WARNING" and runtime.is_ours(record)
    ]
    return run


def engine_config(
    draft: str, target: str, speculative: dict[str, Any], **engine: Any
) -> Any:
    """The engine's config with the draft's settings applied."""
    from vllm.engine.arg_utils import EngineArgs

    arguments = EngineArgs(
        model=target,
        skip_tokenizer_init=True,
        speculative_config={**speculative, "model": draft},
        use_tqdm_on_load=False,
        logging_config=runtime.logging_as_it_is(),
        **engine,
    )
    with kernels.any_format():
        config: Any = arguments.create_engine_config()
    return config.speculative_config.apply_draft_overrides(config)


def _construct(run: DryRun) -> Any:
    if run.draft_config.quantization is None:
        return _build(run)
    try:
        return _build(run)
    except Exception as error:
        if not kernels.is_about_this_machine(error):
            raise
    with kernels.any_will_do():
        try:
            model = _build(run)
        except Exception as error:
            if not kernels.is_about_this_machine(error):
                raise
            model, reason = None, sentence(error).partition("\n")[0]
            run.note(
                f"The draft is quantised ({run.draft_config.quantization}) and cannot "
                f"be built on this machine ({reason}). Only "
                "its vocabulary was checked; check it on the serving machine."
            )
    return model


def _build(run: DryRun) -> Any:
    from vllm.model_executor.layers.rotary_embedding import _ROPE_DICT
    from vllm.model_executor.model_loader.utils import initialize_model
    from vllm.utils.torch_utils import set_default_torch_dtype

    with (
        set_default_torch_dtype(run.draft_config.dtype),
        torch.device("meta"),
        # vLLM shares rotary tables among models; one without values is for nobody else.
        mock.patch.dict(_ROPE_DICT, clear=True),
    ):
        return initialize_model(run.config, model_config=run.draft_config)


def _load(run: DryRun) -> bool:
    from vllm.model_executor.model_loader import get_model_loader
    from vllm.utils.torch_utils import set_default_torch_dtype

    loader = get_model_loader(run.config.load_config)
    with set_default_torch_dtype(run.draft_config.dtype), headers.without_weights():
        loader.load_weights(run.model, run.draft_config)
    return True


def _propose(run: DryRun) -> bool:
    if not run.config.speculative_config.parallel_drafting:
        return True
    from vllm.v1.spec_decode.llm_base_proposer import SpecDecodeBaseProposer

    proposer = SimpleNamespace(
        draft_model_config=run.draft_config, pass_hidden_states_to_model=False
    )
    SpecDecodeBaseProposer._init_parallel_drafting_params(proposer)  # type: ignore[arg-type]
    return True


def _attempt(run: DryRun, stage: Stage, step: Callable[[], T]) -> T | None:
    """Run a stage; whatever would end the server becomes an error."""
    try:
        return step()
    except Exception as error:
        run.findings.append(Finding(Severity.ERROR, stage, sentence(error)))
        return None


def sentence(error: Exception) -> str:
    """What the server's log shows of an error, without the wrapping.

    Configs are checked by pydantic, which puts a preamble around each message. Errors
    of other types than `ValueError` say what they are.
    """
    details = getattr(error, "errors", None)
    if callable(details):
        causes = [
            detail.get("ctx", {}).get("error", detail["msg"]) for detail in details()
        ]
        return " ".join(str(cause) for cause in causes)
    if type(error) is ValueError:
        return str(error)
    return f"{type(error).__name__}: {error}"

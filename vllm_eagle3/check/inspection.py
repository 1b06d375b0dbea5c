# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""From two folders to a report: the walk, its findings and the facts."""

import re
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

from torch import nn

from vllm_eagle3 import subtree
from vllm_eagle3.check import (
    beyond,
    dry_run,
    exporters,
    facts,
    headers,
    runtime,
    source,
)
from vllm_eagle3.check.dry_run import DryRun
from vllm_eagle3.check.report import Finding, Report, Severity, Stage

DEFAULT_TOKENS = 3


@dataclass(frozen=True)
class Options:
    """How the pair would be served.

    Attributes:
        tokens: speculative tokens; `None` takes what the draft's config proposes.
        trust_remote_code: as in `vllm serve`.
        max_model_len: the same; `None` takes what the target's config says.
    """

    tokens: int | None = None
    trust_remote_code: bool = False
    max_model_len: int | None = None


def inspect(
    draft: source.Folder,
    target: source.Folder,
    options: Options,
    clock: runtime.Clock,
) -> Report:
    """Judge a draft before its target.

    Args:
        clock: started when the check began.

    Raises:
        ValueError: a config is no JSON, or another class than the fork's serves.
    """
    config, target_config = draft.config(), target.config()
    tensors = _headers(draft)
    speculative = _speculative(config, tensors, options)
    with source.bare_target(target, target_config) as folder:
        run = dry_run.walk(
            str(draft.path),
            str(folder),
            speculative,
            clock,
            trust_remote_code=options.trust_remote_code,
            max_model_len=options.max_model_len,
        )
    _require_own_class(run)
    checkpoint = _checkpoint(tensors)
    sizes = _sizes(run, config, target_config)
    found = [*run.findings, *beyond.findings(run, sizes, checkpoint), *_notes(run)]
    vocabulary = facts.vocabulary(sizes, checkpoint)
    return Report(
        draft=draft.shown,
        target=target.shown,
        findings=tuple(dict.fromkeys(_spoken(f, draft, folder) for f in found)),
        speculative_config=_to_serve(speculative, draft),
        exporter=exporters.recognise(
            config, tensors or (), {path.name for path in draft.path.iterdir()}
        ),
        model=facts.model(run),
        vocabulary=vocabulary,
        costs=facts.costs(run, vocabulary),
        quantisation=facts.quantisation(run, checkpoint),
        sharing=facts.sharing(run, checkpoint),
        seconds=clock.read(),
    )


def _require_own_class(run: DryRun) -> None:
    served_by = type(run.model)
    if run.model is not None and served_by.__module__ not in subtree.REPLACED_MODULES:
        raise ValueError(
            f"A server would use vLLM's own {served_by.__name__} for this draft, of "
            "which this check knows nothing. Start the server to find out."
        )


def _headers(draft: source.Folder) -> dict[str, Any] | None:
    """The checkpoint's tensors without weights, or `None` if it cannot be read.

    What is wrong with it, the walk meets at the same place as a server.
    """
    from vllm.config.load import LoadConfig
    from vllm.model_executor.model_loader.default_loader import DefaultModelLoader

    loader = DefaultModelLoader(LoadConfig(use_tqdm_on_load=False))
    model_config: Any = SimpleNamespace(model=str(draft.path), revision=None)
    try:
        with runtime.captured_logs(), headers.without_weights():
            return dict(loader.get_all_weights(model_config, nn.Module()))
    except Exception:
        return None


def _checkpoint(tensors: dict[str, Any] | None) -> Any:
    from vllm.model_executor.models.eagle3_checkpoint import Eagle3Checkpoint

    if tensors is None:
        return None
    try:
        return Eagle3Checkpoint.read(tensors.items())
    except ValueError:
        return None


def _speculative(
    config: dict[str, Any], tensors: dict[str, Any] | None, options: Options
) -> dict[str, Any]:
    """How this draft is served: what its config and names ask for."""
    speculative = {
        "method": "eagle3",
        "num_speculative_tokens": options.tokens or _proposed_tokens(config),
    }
    parallel = (
        config.get("speculators_model_type") == "peagle"
        or config.get("parallel_drafting") is True
        or any(re.match("p-?eagle", name, re.I) for name in _architectures(config))
        or any(name.endswith("mask_hidden") for name in tensors or ())
    )
    return speculative | ({"parallel_drafting": True} if parallel else {})


def _architectures(config: dict[str, Any]) -> list[str]:
    names = config.get("architectures")
    return [str(name) for name in names] if isinstance(names, list) else []


def _proposed_tokens(config: dict[str, Any]) -> int:
    """What a speculators config proposes, else three."""
    try:
        tokens = config["speculators_config"]["proposal_methods"][0][
            "speculative_tokens"
        ]
    except (KeyError, IndexError, TypeError):
        return DEFAULT_TOKENS
    return tokens if isinstance(tokens, int) and tokens > 0 else DEFAULT_TOKENS


def _sizes(run: DryRun, config: dict[str, Any], target: dict[str, Any]) -> Any:
    """The server's sizes; out of the files where the server makes no config."""
    from vllm.model_executor.models.draft_vocabulary import VocabularySizes

    if run.model is not None:
        return run.model.draft.vocabulary
    if run.config is not None:
        draft = run.draft_config.hf_config
        target_size = run.config.model_config.get_vocab_size()
        embedded = getattr(draft, "vocab_size", None)
        own = getattr(draft, "draft_vocab_size", None)
    else:
        layer = _nested(config, "transformer_layer_config")
        embedded, own = layer.get("vocab_size"), config.get("draft_vocab_size")
        target_size = _nested(target, "text_config").get("vocab_size")
    if not isinstance(embedded, int) or not isinstance(target_size, int):
        return None
    try:
        return VocabularySizes.resolve(
            target=target_size, embedded=embedded, draft_vocab_size=own
        )
    except ValueError:
        return None


def _nested(config: dict[str, Any], key: str) -> dict[str, Any]:
    """The part of a config that says how a decoder is built."""
    part = config.get(key)
    return part if isinstance(part, dict) and part else config


def _notes(run: DryRun) -> list[Finding]:
    # A cache alone may be quantised: that takes no kernels of the draft.
    if run.model is None or run.model.quant_config is None:
        return []
    if run.draft_config.quantization is None:
        return []
    return [
        Finding(
            Severity.NOTE,
            Stage.LOADING,
            f"The draft is quantised ({run.draft_config.quantization}). Whether the "
            "serving machine has kernels for it was not tried.",
        )
    ]


def _spoken(finding: Finding, draft: source.Folder, target: Any) -> Finding:
    """The finding without folders that exist for this check only."""
    message = finding.message.replace(str(target), "TARGET")
    if draft.scratch:
        message = message.replace(str(draft.path), draft.shown.name)
    return Finding(finding.severity, finding.stage, message)


def _to_serve(speculative: dict[str, Any], draft: source.Folder) -> dict[str, Any]:
    """For `--speculative-config`."""
    revision = draft.shown.revision
    named = {"model": draft.shown.name} | ({"revision": revision} if revision else {})
    method, *rest = speculative.items()
    return {**dict([method]), **named, **dict(rest)}

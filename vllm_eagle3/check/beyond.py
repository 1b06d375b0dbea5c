# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""What the server's rules would say after its first refusal.

A server stops at the first error. Each rule here is the server's own function, called
by itself, so that a user can mend everything in one go.
"""

import functools
from collections.abc import Callable, Iterator
from typing import Any

from vllm_eagle3.check.dry_run import DryRun, sentence
from vllm_eagle3.check.report import Finding, Severity, Stage

# Of `Eagle3ForCausalLM.load_weights`, between reading the map and filling parameters.
_STEPS = (
    "_check_kind",
    "_check_shared",
    "_fit_vocabulary",
    "_check_parallel",
    "_fit_modules",
)


def findings(run: DryRun, sizes: Any, checkpoint: Any) -> Iterator[Finding]:
    """Further errors, each once, without those that the walk has met.

    Args:
        sizes: the server's `VocabularySizes`, if they could be settled.
        checkpoint: the server's `Eagle3Checkpoint`, if it could be read.
    """
    if run.loaded or checkpoint is None:
        return
    said = " ".join(finding.message for finding in run.findings)
    rules = _rules_of_model(run, checkpoint) if run.model else iter(())
    for rule in (*_rules_of_vocabulary(sizes, checkpoint), *rules):
        try:
            rule()
        except ValueError as error:
            message = sentence(error)
            if message not in said:
                said += message
                yield Finding(Severity.ERROR, Stage.BEYOND, message)
        except Exception:
            # A rule that stumbles over what an earlier one refuses has no say.
            continue


def _rules_of_vocabulary(sizes: Any, checkpoint: Any) -> Iterator[Callable[[], Any]]:
    from vllm.model_executor.models.draft_vocabulary import (
        check_head_rows,
        read_vocabulary,
    )

    if sizes is None:
        return
    head = checkpoint.weights.get("lm_head.weight")
    if head is not None:
        yield lambda: check_head_rows(sizes, head)
    yield lambda: read_vocabulary(sizes, checkpoint.d2t, checkpoint.t2d)


def _rules_of_model(run: DryRun, checkpoint: Any) -> Iterator[Callable[[], Any]]:
    """The steps of a first load, and the loader itself."""
    from vllm.model_executor.models.eagle3_loading import Eagle3WeightLoader

    model = run.model
    shared = {"embed_tokens", "lm_head"}
    shared -= {name for name in shared if checkpoint.has_module(name)}
    for step in _STEPS:
        yield functools.partial(getattr(model, step), checkpoint)
    loader = Eagle3WeightLoader(model, model.draft, model._stacked, model.quant_config)
    yield lambda: loader.load(checkpoint, complete=True, shared=frozenset(shared))

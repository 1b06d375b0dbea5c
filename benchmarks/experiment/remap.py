# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""What vLLM did with a full-vocabulary draft before PR #53458, put back for comparison.

A draft whose ids are the target's ids had offsets all the same, all of them zero. Each
step added them to the draft's ids, filled a tensor with `-inf` and scattered the
logits over it, which gives what was there before. This lives in the benchmark: the
product has no switch for it.
"""

from typing import Any

import torch


class Remapped:
    """Stands in for a draft's `compute_logits` and remaps what that returns.

    Attributes:
        calls: How often it was asked, to show that it was.
    """

    def __init__(self, model: Any) -> None:
        self.calls = 0
        self._model = model
        self._plain = model.compute_logits

    def __call__(self, hidden_states: torch.Tensor) -> torch.Tensor:
        """`[tokens, hidden]` to `[tokens, T]`."""
        self.calls += 1
        logits = self._plain(hidden_states)
        offsets = self._model.forced_offsets
        ids = torch.arange(len(offsets), device=logits.device) + offsets
        widened = torch.full_like(logits, -torch.inf)
        widened[:, ids] = logits
        return widened


def draft_model(worker: Any) -> Any:
    """Returns the draft of one of vLLM's workers; None if it has none."""
    runner = worker.model_runner
    # V1 and Model Runner V2 have different names for what drafts.
    drafter = getattr(runner, "drafter", None) or getattr(runner, "speculator", None)
    return getattr(drafter, "model", None)


def force(worker: Any) -> None:
    """Makes the worker's full-vocabulary draft remap its logits in each step.

    Raises:
        ValueError: The draft has a remap of its own.
    """
    model = draft_model(worker)
    if model.draft_id_to_target_id is not None:
        raise ValueError(
            "draft_id_to_target_id is set, so this draft remaps its ids already; the "
            "remap can be forced on a full-vocabulary draft only"
        )
    zeros = torch.zeros(model.config.draft_vocab_size, dtype=torch.int64)
    model.register_buffer("forced_offsets", zeros, persistent=False)
    model.compute_logits = Remapped(model)


def forced_remaps(worker: Any) -> int:
    """Tells how often the worker's draft remapped because of `force`."""
    logits = getattr(draft_model(worker), "compute_logits", None)
    return logits.calls if isinstance(logits, Remapped) else 0

# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""Ends an engine at start if not all of its processes have the overlay.

Symptom: of the ranks of one engine, on one machine or on many, some run the fork and
some run stock. They gather logits of different sizes, and the engine hangs or dies in
the middle of a collective; or it serves, and drafts from two kinds of models.

Cause: each process decides by what is installed and set where it runs, and vLLM does
not compare.

Fix: two checks, neither of which is a collective, because a rank of stock vLLM would
not take part and the others would wait for it.

- A speculative config that goes to another process names ``restore`` of this module.
  Without the package, unpickling it fails; with the overlay off, ``restore`` refuses.
  This is how Ray's workers and those of vLLM's own executor get their config.
- Each rank leaves a note in the store through which the ranks have found each other,
  and looks for the notes of all others. This also covers nodes that make a config of
  their own (``vllm serve --headless``, ``torchrun``).
"""

import functools
import socket
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from vllm_eagle3 import __version__, greedy

if TYPE_CHECKING:
    from torch.distributed import Store

_MARK = "_vllm_eagle3_ranks"
_ENTRY_POINT = "eagle3"
_MADE_BY = "_vllm_eagle3_made_by"
# Ranks come out of the collective before it within moments of each other.
PATIENCE_S = 30.0
_WHAT_TO_DO = (
    "Install the same vllm-eagle3 on every node, set VLLM_EAGLE3_DISABLE and "
    "VLLM_PLUGINS alike on all of them, and see what `vllm-eagle3 status` says there."
)


def mark(config: Any, given: Mapping[str, Any]) -> None:
    """Notes in a finished ``SpeculativeConfig`` that it was made with the overlay."""
    del given
    vars(config)[_MADE_BY] = _who()


def watch(undo: ExitStack) -> None:
    """Checks each process that a config is sent to, and each rank of an engine.

    Args:
        undo: Receives callbacks that take the changes back.
    """
    from vllm.config.speculative import SpeculativeConfig
    from vllm.distributed import parallel_state

    original = parallel_state.initialize_model_parallel
    if hasattr(original, _MARK):
        return

    @functools.wraps(original)
    def initialize(*args: Any, **kwargs: Any) -> None:
        original(*args, **kwargs)
        _meet_other_ranks()

    setattr(initialize, _MARK, True)
    parallel_state.initialize_model_parallel = initialize
    undo.callback(setattr, parallel_state, "initialize_model_parallel", original)
    SpeculativeConfig.__reduce_ex__ = _reduce  # type: ignore[method-assign,assignment]
    undo.callback(delattr, SpeculativeConfig, "__reduce_ex__")


def _who() -> str:
    return f"vllm-eagle3 {__version__} on {socket.gethostname()}"


def _reduce(config: Any, protocol: Any) -> Any:
    reduced = object.__reduce_ex__(config, protocol)
    assert isinstance(reduced, tuple)  # a string names a global, which no config is
    make, arguments, *state = reduced
    if not _is_ours(config):
        return make, arguments, *state
    return restore, (_who(), make, arguments), *state


def restore(sender: str, make: Any, arguments: Any) -> Any:
    """Makes the empty config that pickle fills, where this process has the overlay.

    Args:
        sender: Which fork made the config, and where.
        make: Pickle's own function for that, called with ``arguments``.

    Raises:
        ValueError: the overlay is inactive here, or is of another version.
    """
    from vllm import envs

    from vllm_eagle3 import overlay

    # vLLM loads plugins when a worker begins, and this is before; other plugins wait
    # for their time.
    if envs.VLLM_PLUGINS is None or _ENTRY_POINT in envs.VLLM_PLUGINS:
        overlay.activate()
    result = overlay.outcome()
    if not result.active:
        raise ValueError(
            f"The config of this engine comes from {sender}, but on "
            f"{socket.gethostname()} vllm-eagle3 {__version__} is inactive: "
            f"{result.reason}. {_WHAT_TO_DO}"
        )
    _check_versions([sender, _who()])
    return make(*arguments)


def _is_ours(config: Any) -> bool:
    """Whether the fork serves the draft, so that ranks have to agree."""
    return config.method == "eagle3" and greedy.is_served_by_the_fork(
        config.draft_model_config
    )


def _meet_other_ranks() -> None:
    import torch.distributed as dist
    from vllm.config import get_current_vllm_config

    if not dist.is_initialized() or dist.get_world_size() == 1:
        return
    config = get_current_vllm_config().speculative_config
    ours = config is not None and _is_ours(config)
    store = dist.distributed_c10d._get_default_store()
    leave_note(store, dist.get_rank())
    if not ours:
        return
    if not hasattr(config, _MADE_BY):
        raise ValueError(
            f"{_who()} serves this draft, but its config comes from a process in which "
            f"vllm-eagle3 is missing or inactive. {_WHAT_TO_DO}"
        )
    check_notes(store, dist.get_world_size())


def leave_note(store: "Store", rank: int) -> None:
    """Tells the other ranks that this one has the overlay."""
    store.set(_key(rank), _who())


def check_notes(store: "Store", world: int, patience_s: float | None = None) -> None:
    """Looks for the note of each rank.

    Args:
        store: Common to all ranks.
        world: How many ranks there are.
        patience_s: How long to wait for a rank that is late (default: PATIENCE_S).

    Raises:
        ValueError: ranks without the overlay, or with another version of it.
    """
    keys = [_key(rank) for rank in range(world)]
    # Stores differ in the error, and none says which keys are missing; see below.
    with suppress(RuntimeError):
        store.wait(keys, timedelta(seconds=patience_s or PATIENCE_S))
    present = [rank for rank in range(world) if store.check([keys[rank]])]
    missing = [rank for rank in range(world) if rank not in present]
    notes = [store.get(keys[rank]).decode() for rank in present]
    if missing:
        raise ValueError(
            f"vllm-eagle3 is missing or inactive on rank {_listed(missing)} of the "
            f"{world} ranks of this engine, and active on rank {_listed(present)} "
            f"({', '.join(dict.fromkeys(notes))}). {_WHAT_TO_DO}"
        )
    _check_versions(notes)


def _check_versions(notes: list[str]) -> None:
    if len({note.partition(" on ")[0] for note in notes}) > 1:
        raise ValueError(
            "The processes of this engine have different versions of vllm-eagle3: "
            f"{', '.join(dict.fromkeys(notes))}. {_WHAT_TO_DO}"
        )


def _key(rank: int) -> str:
    return f"vllm-eagle3/rank/{rank}"


def _listed(ranks: list[int]) -> str:
    *most, last = map(str, ranks)
    return f"{', '.join(most)} and {last}" if most else last

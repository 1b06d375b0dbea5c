# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""The two fates of a generated checkpoint, told apart from all others."""

import re
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from torch import nn

from vllm_eagle3.config_file import check_file

from ..checkpoint import Checkpoint
from ..running import check_against_reference
from . import loading
from .bending import bent
from .examples import Example

Fate = Literal["served", "refused", "unreadable config"]


class Fault(AssertionError):
    """A third fate."""


@dataclass(frozen=True)
class Verdict:
    """What became of a checkpoint, and the sentence where it was refused."""

    fate: Fate
    sentence: str = ""


def judge(example: Example) -> Verdict:
    """Load the example and say what became of it.

    Raises:
        Fault: neither a right model nor a refusal of the fork.
    """
    checkpoint = bent(example)
    family = example.recipe.family
    try:
        # As the overlay does before vLLM reads the file.
        check_file(checkpoint.config)
    except Exception as error:
        return Verdict("refused", _refusal(error))
    try:
        own = loading.read_config(checkpoint)
    except Exception as error:
        # transformers' own: a config of sizes that do not go together.
        return Verdict("unreadable config", f"{type(error).__name__}: {error}")
    return judge_load(lambda: loading.load(family, own, checkpoint), checkpoint)


def judge_load(
    load: Callable[[], nn.Module], checkpoint: Checkpoint, *, compare: bool = True
) -> Verdict:
    """As `judge`, for whatever `load` does with the checkpoint."""
    try:
        model = load()
    except Exception as error:
        return Verdict("refused", _refusal(error))
    try:
        if compare:
            check_against_reference(model, checkpoint)
    except Exception as error:
        # A reference that cannot read a checkpoint says that none should be served.
        raise Fault(f"served, but {type(error).__name__}: {error}") from error
    return Verdict("served")


def _refusal(error: Exception) -> str:
    sentence = str(error)
    if not isinstance(error, ValueError) or not _is_ours(error):
        place = traceback.extract_tb(error.__traceback__)[-1]
        where = f"{Path(place.filename).name}:{place.lineno}"
        raise Fault(f"{type(error).__name__} in {where}: {sentence}") from error
    if "\n" in sentence or not re.search(r"[.)]$", sentence) or " " not in sentence:
        raise Fault(f"not a sentence: {sentence!r}") from error
    return sentence


def _is_ours(error: Exception) -> bool:
    """Whether code of the fork raised it, and no library below."""
    place: Any = traceback.extract_tb(error.__traceback__)[-1]
    folder = Path(place.filename).parent
    return "site-packages" not in folder.parts and (
        folder.name in ("models", "vllm_eagle3")
    )

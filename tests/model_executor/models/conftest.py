# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""A draft on disk that a test can bend before loading it."""

import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from tests.support.checkpoints import (
    TARGET_VOCAB,
    DraftShape,
    draft_config,
    draft_tensors,
    write_checkpoint,
)
from tests.support.drafts import load_draft, own_rope_tables

AUX_IDS = "eagle_aux_hidden_state_layer_ids"
AUX_KEYS = {AUX_IDS, "eagle_config", "num_aux_hidden_states", "num_aux_layers"}


@dataclass
class Draft:
    """Config and tensors of a draft; `load` writes both and loads them with vLLM."""

    folder: Path
    config: dict[str, Any]
    tensors: dict[str, torch.Tensor]

    def write(self) -> Path:
        return write_checkpoint(self.folder, self.config, self.tensors)

    def load(self, target: dict[str, Any] | None = None, **arguments: Any) -> nn.Module:
        self.write()
        return load_draft(self.folder, target, **arguments)

    def refusal(self, target: dict[str, Any] | None = None, **arguments: Any) -> str:
        """The sentence with which loading is refused."""
        with pytest.raises(ValueError) as refused:
            self.load(target, **arguments)
        return str(refused.value)


@pytest.fixture(autouse=True)
def rope_tables() -> Iterator[None]:
    """Each test makes its own, and leaves none behind for others."""
    with own_rope_tables():
        yield


@pytest.fixture
def make_draft(tmp_path: Path) -> Callable[..., Draft]:
    """`make_draft(family, draft_vocab=..., layers=..., **config changes)`."""

    def make(
        family: str,
        *,
        draft_vocab: int = TARGET_VOCAB,
        layers: int = 1,
        aux: int = 3,
        head: bool = True,
        hidden: int | None = None,
        seed: int = 0,
        **changes: Any,
    ) -> Draft:
        sizes = {} if hidden is None else {"hidden": hidden}
        shape = DraftShape(family, draft_vocab, layers, aux, head=head, **sizes)
        number = len(list(tmp_path.iterdir()))
        config = {"draft_vocab_size": draft_vocab, "num_hidden_layers": layers}
        if hidden is not None:
            config["hidden_size"] = hidden
        if aux == 3 and changes.keys().isdisjoint(AUX_KEYS):
            config[AUX_IDS] = [2, 4, 5]
        return Draft(
            tmp_path / f"draft{number}",
            draft_config(family, **(config | changes)),
            draft_tensors(shape, seed),
        )

    return make


@pytest.fixture
def eagle3_log(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], list[str]]:
    """Messages of the draft models at a level.

    Taken before any handler: vLLM replaces those of its loggers when it makes the
    first engine config of a process.
    """
    kept: list[logging.LogRecord] = []
    handle = logging.Logger.handle

    def keep(logger: logging.Logger, record: logging.LogRecord) -> None:
        if ".models.eagle3_" in record.name:
            kept.append(record)
        handle(logger, record)

    monkeypatch.setattr(logging.Logger, "handle", keep)
    return lambda level: [r.getMessage() for r in kept if r.levelno == level]

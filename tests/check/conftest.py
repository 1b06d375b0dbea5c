# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""A pair on disk that a test can bend, and the check of it in this process."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.support.checkpoints import (
    TARGET_VOCAB,
    DraftShape,
    draft_config,
    draft_tensors,
    target_config,
    write_checkpoint,
)
from vllm_eagle3.check import inspection, runtime, source
from vllm_eagle3.check.report import Report, Severity

AUX = {"eagle_aux_hidden_state_layer_ids": [1, 4, 6]}


@dataclass
class Pair:
    """A draft and its target; `check` writes both and looks at them."""

    root: Path
    config: dict[str, Any]
    tensors: dict[str, torch.Tensor]
    target: dict[str, Any] = field(default_factory=target_config)

    @property
    def draft_folder(self) -> Path:
        return self.root / "draft"

    @property
    def target_folder(self) -> Path:
        return self.root / "target"

    def write(self) -> "Pair":
        write_checkpoint(self.draft_folder, self.config, self.tensors)
        write_checkpoint(self.target_folder, self.target, {})
        return self

    def check(self, **options: Any) -> Report:
        self.write()
        return check_folders(self.draft_folder, self.target_folder, **options)

    def arguments(self, *more: str) -> list[str]:
        """Of the command line."""
        self.write()
        target = str(self.target_folder)
        return ["check", str(self.draft_folder), "--target", target, *more]


def check_folders(draft: Path, target: Path, **options: Any) -> Report:
    clock = runtime.Clock()
    runtime.import_vllm(clock)
    return inspection.inspect(
        source.draft_folder(str(draft), None, draft.parent),
        source.target_folder(str(target), None),
        inspection.Options(**options),
        clock,
    )


def errors(report: Report) -> list[str]:
    return [finding.message for finding in report.of(Severity.ERROR)]


def warnings(report: Report) -> list[str]:
    return [finding.message for finding in report.of(Severity.WARNING)]


MakePair = Callable[..., Pair]


@pytest.fixture
def make_pair(tmp_path: Path) -> Iterator[MakePair]:
    """Makes `make_pair(family, draft_vocab, **config)`: a draft without a fault."""

    def make(
        family: str = "llama", draft_vocab: int = TARGET_VOCAB, **changes: Any
    ) -> Pair:
        config = draft_config(
            family, **{"draft_vocab_size": draft_vocab, **AUX, **changes}
        )
        tensors = draft_tensors(DraftShape(family=family, draft_vocab=draft_vocab))
        if draft_vocab < TARGET_VOCAB:
            tensors["d2t"] = torch.arange(draft_vocab) * (
                TARGET_VOCAB // draft_vocab - 1
            )
        return Pair(tmp_path, config, tensors)

    yield make

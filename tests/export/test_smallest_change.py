# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""The first patch's tests fail on the files that it finds, and pass on those it makes.

They run here as they stand, with the class that each text defines in the registry.
"""

import importlib.util
from pathlib import Path

import pytest
import torch
from torch import nn
from vllm.model_executor.models.registry import ModelRegistry

from tests.model_executor import test_eagle3_d2t_checkpoints as restored
from tests.support.checkpoints import (
    FAMILIES,
    TARGET_VOCAB,
    DraftShape,
    draft_config,
    draft_tensors,
)
from tests.support.stock import CLASSES
from vllm_eagle3 import vllm_tree
from vllm_eagle3.export import series
from vllm_eagle3.export.sources import MODELS

from .trees import installed_package

STOCK_REFUSAL = "no module or parameter named 'draft_id_to_target_id'"


@pytest.fixture(scope="module")
def made():
    return series.compute(vllm_tree.find(installed_package()))


@pytest.fixture
def serve(monkeypatch, tmp_path):
    """`serve(family, text)`: drafts of the family load the class in `text`."""

    def serve(family: str, text: str) -> None:
        (architecture,) = draft_config(family)["architectures"]
        registry = dict(ModelRegistry.models)
        monkeypatch.setattr(ModelRegistry, "models", registry)
        ModelRegistry.register_model(architecture, class_in(text, family, tmp_path))

    return serve


def class_in(text: str, family: str, folder: Path) -> type[nn.Module]:
    module, name = CLASSES[family]
    (folder / f"{module}.py").write_text(text)
    # In the package of the models, to which the file's own imports are relative.
    spec = importlib.util.spec_from_file_location(
        f"vllm.model_executor.models._exported_{module}", folder / f"{module}.py"
    )
    assert spec is not None and spec.loader is not None
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return getattr(loaded, name)


@pytest.mark.parametrize("family", FAMILIES)
def test_without_the_change_a_full_vocabulary_draft_with_d2t_is_refused(
    made, serve, tmp_path, family
):
    serve(family, made.base[path_of(family)])
    with pytest.raises(ValueError, match=STOCK_REFUSAL):
        full_vocabulary_with_d2t(tmp_path, family, True)
    restored.test_a_reduced_vocabulary_draft_is_remapped_by_its_d2t(tmp_path, family)


@pytest.mark.parametrize("family", FAMILIES)
def test_with_the_change_it_loads_and_offsets_are_refused_as_before(
    made, serve, tmp_path, family
):
    serve(family, made.commits[0].files[path_of(family)])
    full_vocabulary_with_d2t(tmp_path, family, True)
    offsets = {"d2t": torch.ones(TARGET_VOCAB, dtype=torch.int64)}
    tensors = draft_tensors(DraftShape(family)) | offsets
    with pytest.raises(ValueError, match=STOCK_REFUSAL):
        restored.load(tmp_path / "offsets", family, TARGET_VOCAB, tensors)


def path_of(family: str) -> str:
    return f"{MODELS}/{CLASSES[family][0]}.py"


full_vocabulary_with_d2t = (
    restored.test_a_full_vocabulary_draft_with_d2t_is_the_draft_without
)

# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""Names that the fork imports from vLLM are found, and missing ones are named."""

import sys

import pytest

from vllm_eagle3 import overlay, subtree, symbols


@pytest.fixture
def package(tmp_path):
    """Returns a function that writes a module and reads what it needs of vLLM."""

    def needed(source: str) -> set[tuple[str, str | None]]:
        (tmp_path / "module.py").write_text(source)
        return symbols.needed_symbols(tmp_path, "vllm.model_executor.models")

    return needed


@pytest.mark.parametrize(
    "source, needed",
    [
        ("import vllm.config", {("vllm.config", None)}),
        (
            "from vllm.config import A, B as C",
            {("vllm.config", "A"), ("vllm.config", "B")},
        ),
        ("from .llama import A", {("vllm.model_executor.models.llama", "A")}),
        ("from ..layers import A", {("vllm.model_executor.layers", "A")}),
        ("def f():\n    from vllm.config import A", {("vllm.config", "A")}),
        ("import torch, vllm_eagle3\nfrom torch import nn", set()),
    ],
)
def test_what_a_module_imports_from_vllm_is_read_from_its_source(
    package, source, needed
):
    assert package(source) == needed


@pytest.mark.parametrize(
    "module, name",
    [
        ("vllm", None),
        ("vllm", "LLM"),  # made by a module's __getattr__
        ("vllm.config", "VllmConfig"),  # imported there
        ("vllm.config", "speculative"),  # a submodule
        ("vllm.model_executor.models.llama", "LlamaAttention"),  # a class
        ("vllm.model_executor.models.utils", "maybe_prefix"),  # a function
        ("vllm.envs", "environment_variables"),  # an annotated assignment
        ("vllm.model_executor.models.registry", "ModelRegistry"),  # an assignment
    ],
)
def test_a_name_that_vllm_has_is_not_missed(module, name):
    assert symbols.missing_symbols([(module, name)]) == []


@pytest.mark.parametrize(
    "module, name, said",
    [
        ("vllm.no_such_module", None, "vllm.no_such_module"),
        ("vllm.no.such", "Name", "vllm.no.such:Name"),
        ("vllm.config", "NoSuchConfig", "vllm.config:NoSuchConfig"),
        # Bound inside a function, which nobody can import.
        ("vllm.plugins", "entry_points", "vllm.plugins:entry_points"),
    ],
)
def test_a_name_that_vllm_lacks_is_said(module, name, said):
    assert symbols.missing_symbols([(module, name)]) == [said]


def test_the_forks_own_modules_are_looked_up_in_its_own_folder(tmp_path):
    (tmp_path / "llama_eagle3.py").write_text("class OnlyInTheFork: ...")
    wanted = [("vllm.model_executor.models.llama_eagle3", "OnlyInTheFork")]
    assert symbols.missing_symbols(wanted, tmp_path) == []
    assert len(symbols.missing_symbols(wanted)) == 1


def test_the_fork_leans_on_names_of_vllm():
    """The overlay's own check would pass on an empty list."""
    needed = symbols.needed_symbols(subtree.models_folder(), subtree.PACKAGE)
    assert ("vllm.config", "VllmConfig") in needed
    assert overlay.is_active()


def test_reading_a_module_does_not_import_it():
    name = "vllm.model_executor.models.zamba2"
    assert symbols.missing_symbols([(name, "Zamba2ForCausalLM")]) == []
    assert name not in sys.modules

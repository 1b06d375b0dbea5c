# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""Stock modules that were imported before the overlay: repaired, or left alone."""

import importlib
import sys
from typing import Any

from tests.plugins.clean_process import FAMILIES, MODELS, load_plugins
from vllm_eagle3 import subtree

FORK = str(subtree.models_folder())


def import_the_proposer_first() -> dict[str, Any]:
    proposer = importlib.import_module("vllm.v1.spec_decode.llm_base_proposer")
    before = proposer.Eagle3LlamaForCausalLM
    # A module of the user's, which holds a class, a module and an alias.
    user = type(sys)("user_code")
    user.draft_class = before
    user.draft_module = sys.modules[f"{MODELS}.llama_eagle3"]
    sys.modules["user_code"] = user

    seen = load_plugins()
    package = sys.modules[MODELS]
    modules = {name: sys.modules[f"{MODELS}.{name}"] for name in FAMILIES}
    return seen | {
        "was_stock": before is not proposer.Eagle3LlamaForCausalLM,
        "files": {name: module.__file__ for name, module in modules.items()},
        "parent": all(getattr(package, name) is modules[name] for name in FAMILIES),
        "proposer": [
            proposer.Eagle3LlamaForCausalLM
            is modules["llama_eagle3"].Eagle3LlamaForCausalLM,
            proposer.Eagle3Qwen3ForCausalLM
            is modules["qwen3_eagle3"].Eagle3Qwen3ForCausalLM,
            proposer.Eagle3DeepseekV2ForCausalLM
            is modules["deepseek_eagle3"].Eagle3DeepseekV2ForCausalLM,
        ],
        "user": [
            user.draft_class is modules["llama_eagle3"].Eagle3LlamaForCausalLM,
            user.draft_module is modules["llama_eagle3"],
        ],
    }


def test_every_binding_of_an_imported_stock_module_is_repaired(clean_vllm):
    seen = clean_vllm(import_the_proposer_first)
    assert seen["was_stock"]
    assert seen["files"] == {name: f"{FORK}/{name}.py" for name in FAMILIES}
    assert seen["parent"]
    assert seen["proposer"] == [True, True, True]
    assert seen["user"] == [True, True]
    (line,) = seen["log"]
    assert "is active" in line


def resolve_in_the_registry_first() -> tuple[bool, bool]:
    registry = importlib.import_module(f"{MODELS}.registry")
    name = "Eagle3LlamaForCausalLM"
    stock = registry.ModelRegistry._try_load_model_cls(name)
    load_plugins()
    now = registry.ModelRegistry._try_load_model_cls(name)
    return now is not stock, now.__module__ == f"{MODELS}.llama_eagle3"


def test_the_registry_forgets_stock_classes(clean_vllm):
    assert clean_vllm(resolve_in_the_registry_first) == (True, True)


def bindings() -> list[Any]:
    """Returns all that a process could have of the three stock modules."""
    proposer = importlib.import_module("vllm.v1.spec_decode.llm_base_proposer")
    package = sys.modules[MODELS]
    return [
        *(sys.modules[f"{MODELS}.{name}"] for name in FAMILIES),
        *(getattr(package, name) for name in FAMILIES),
        proposer.Eagle3LlamaForCausalLM,
        proposer.Eagle3Qwen3ForCausalLM,
        proposer.Eagle3DeepseekV2ForCausalLM,
    ]


def subclass_first() -> tuple[bool, dict[str, Any]]:
    before = bindings()
    module = importlib.import_module(f"{MODELS}.llama_eagle3")

    class Theirs(module.Eagle3LlamaForCausalLM):
        pass

    seen = load_plugins()
    return all(a is b for a, b in zip(before, bindings(), strict=True)), seen


def register_class_first() -> tuple[bool, dict[str, Any]]:
    before = bindings()
    module = importlib.import_module(f"{MODELS}.llama_eagle3")
    registry = importlib.import_module(f"{MODELS}.registry").ModelRegistry
    registry.register_model("Theirs", module.Eagle3LlamaForCausalLM)
    seen = load_plugins()
    return all(a is b for a, b in zip(before, bindings(), strict=True)), seen


def build_first() -> tuple[bool, dict[str, Any]]:
    before = bindings()
    module = importlib.import_module(f"{MODELS}.llama_eagle3")
    built = module.Eagle3LlamaForCausalLM.__new__(module.Eagle3LlamaForCausalLM)
    seen = load_plugins()
    del built
    return all(a is b for a, b in zip(before, bindings(), strict=True)), seen


def break_the_forks_import() -> tuple[bool, dict[str, Any]]:
    before = bindings()
    # The last of the three: two are replaced already when this fails.
    sys.meta_path.insert(0, FailingImport())
    seen = load_plugins()
    return all(a is b for a, b in zip(before, bindings(), strict=True)), seen


class FailingImport:
    def find_spec(self, name: str, *_: object) -> None:
        if name == f"{MODELS}.deepseek_eagle3":
            raise ImportError("no deepseek today")


def assert_left_alone(untouched: bool, seen: dict[str, Any], reason: str) -> None:
    assert untouched
    assert seen["search_path"] == [seen["stock"]]
    (line,) = seen["log"]
    assert line.startswith("WARNING vllm-eagle3 ")
    assert reason in line


def test_a_subclass_of_a_stock_draft_keeps_the_process_on_stock(clean_vllm):
    assert_left_alone(*clean_vllm(subclass_first), "Theirs was derived from")


def test_a_registered_stock_class_keeps_the_process_on_stock(clean_vllm):
    assert_left_alone(*clean_vllm(register_class_first), "registered as Theirs")


def test_a_live_stock_draft_keeps_the_process_on_stock(clean_vllm):
    reason = "a stock Eagle3LlamaForCausalLM is already built"
    assert_left_alone(*clean_vllm(build_first), reason)


def test_a_failing_import_of_the_fork_takes_the_repair_back(clean_vllm):
    assert_left_alone(*clean_vllm(break_the_forks_import), "no deepseek today")

# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""The three patches: what each changes in a given vLLM, computed from its files."""

from dataclasses import dataclass

from vllm_eagle3.export import messages
from vllm_eagle3.export.edits import InsertIntoBranch, Moved, RemoveFunction
from vllm_eagle3.export.imports import without_unused
from vllm_eagle3.export.mail import Commit
from vllm_eagle3.export.moved import problems
from vllm_eagle3.export.sources import MODELS, TESTS, Sources
from vllm_eagle3.vllm_tree import VllmTree

# A draft of the full vocabulary needs no map. Zeros say just that; anything else goes
# on to be refused as before, until the third patch can honour it.
_IDENTITY_IS_NO_MAP = """\
if self.draft_id_to_target_id is None and not loaded_weight.any():
    continue
"""
_CLASSES = {
    "llama_eagle3": "Eagle3LlamaForCausalLM",
    "qwen3_eagle3": "Eagle3Qwen3ForCausalLM",
    "deepseek_eagle3": "Eagle3DeepseekV2ForCausalLM",
}
_SMALLEST_CHANGE = tuple(
    InsertIntoBranch(
        path=f"{MODELS}/{module}.py",
        method=f"{name}.load_weights",
        value="d2t",
        variable="name",
        needs=("draft_id_to_target_id",),
        statement=_IDENTITY_IS_NO_MAP,
    )
    for module, name in _CLASSES.items()
)
# It replaces internals of one of the old files by mocks. What it guards, and that a
# quantised head loads in all three families, is in test_eagle3_quant_drafts.py.
_SUPERSEDED = RemoveFunction(
    path="tests/model_executor/test_eagle_quantization.py",
    name="test_eagle3_lm_head_receives_quant_config",
)
_HELPERS = ("support/checkpoints", "support/drafts")
_RESTORED = (
    "model_executor/test_eagle_quantization",
    "model_executor/test_eagle3_d2t_checkpoints",
)
_CONTRACT = ("model_executor/models/test_draft_vocabulary",)
_SUPPORT = (
    "support/quantisation",
    "support/ropes",
    "model_executor/models/conftest",
)
# They compare with the files that are replaced, are about other draft models, or count
# on what the plugin refuses before vLLM reads a draft's file.
_STAYING = (
    "model_executor/models/test_eagle3_rope",
    "model_executor/models/test_eagle3_stock_parity",
    "model_executor/models/test_reference_drafts",
)
# Tests of what the plugin mends around the models: names that the registry lacks, and
# config keys that vLLM loses or stumbles over before a model is built.
_OF_THE_PLUGIN = {
    "test_eagle3_aux_states": ("test_a_null_means_that_they_are_used",),
    "test_eagle3_cases": (
        "test_a15_architectures_unknown_to_vllm_are_served_as_llama",
    ),
    "test_eagle3_config": ("test_defaults_of_speculators_are_those_of_its_algorithms",),
    "test_eagle3_quant_drafts": (
        "test_configs_that_quantise_nothing",
        "test_files_of_modelopt_that_quantise_nothing",
    ),
}


@dataclass(frozen=True)
class Series:
    """What is written as mails.

    Attributes:
        base: Files of the tree that the series changes, as they are.
        commits: In their order.
    """

    base: dict[str, str]
    commits: tuple[Commit, ...]


def compute(tree: VllmTree) -> Series:
    """Computes the series against a tree.

    Raises:
        Moved: naming all that the series rests on and this tree lacks or has otherwise.
        ValueError: if the fork's own files are not complete.
    """
    sources = Sources(_upstream_header(tree))
    restored = sources.empty("__init__") | sources.lifted("one_rank")
    restored |= sources.tests(*_HELPERS, *_RESTORED)
    contract = sources.contract() | sources.tests(*_CONTRACT)
    families = _families(sources)
    replaced = [edit.path for edit in _SMALLEST_CHANGE]
    new = {*restored, *contract, *families}.difference(replaced)
    found = problems(tree, new)
    if found:
        raise Moved(
            f"{tree.label} has moved from what the series was made for: "
            f"{'; '.join(found)}. Nothing was written"
        )
    base = {path: tree.read(path) for path in replaced}
    for edit in _SMALLEST_CHANGE:
        restored[edit.path] = edit.apply(base[edit.path])
    if (tree.root / _SUPERSEDED.path).exists():  # what is installed has no tests
        base[_SUPERSEDED.path] = tree.read(_SUPERSEDED.path)
        families[_SUPERSEDED.path] = _SUPERSEDED.apply(base[_SUPERSEDED.path])
    commits = (
        Commit(messages.RESTORED, restored),
        Commit(messages.CONTRACT, contract),
        Commit(messages.FAMILIES, families),
    )
    return Series(base, commits)


def _families(sources: Sources) -> dict[str, str]:
    """All model files but the contract's, and the tests that need no plugin."""
    names = sources.test_names("model_executor/models", {*_CONTRACT, *_STAYING})
    files = sources.families() | sources.lifted("ready_models")
    files |= sources.tests(*_SUPPORT, *names)
    for file, functions in _OF_THE_PLUGIN.items():
        path = f"{TESTS}/{file}.py"
        for name in functions:
            files[path] = RemoveFunction(path, name).apply(files[path])
        files[path] = without_unused(files[path])
    return files


def is_applied(tree: VllmTree) -> bool:
    """Whether a tree has all three patches already, of this or another version."""
    marks = (f"{MODELS}/draft_vocabulary.py", f"{MODELS}/eagle3_head.py")
    return all((tree.root / mark).is_file() for mark in marks)


def _upstream_header(tree: VllmTree) -> str:
    """The first lines of every file of vLLM, as the registry's file has them.

    Raises:
        Moved: if that file begins otherwise.
    """
    path = f"{MODELS}/registry.py"
    lines = tree.read(path).splitlines(keepends=True)[:2]
    if len(lines) < 2 or not all(line.startswith("# SPDX-") for line in lines):
        raise Moved(f"{path} does not begin with two SPDX lines")
    return "".join(lines)

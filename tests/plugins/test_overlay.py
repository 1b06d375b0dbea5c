# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""When the overlay becomes active, when it does not, and what it then says."""

import shutil
import sys
from importlib import metadata
from importlib.machinery import PathFinder
from pathlib import Path
from typing import Any

import pytest

from tests.plugins.clean_process import LogLines, load_plugins
from vllm_eagle3 import subtree, versions

FORK = subtree.models_folder()


def stays_on_stock(seen: dict[str, Any]) -> bool:
    return (
        seen["folders"] == {seen["stock"]}
        and seen["search_path"] == [seen["stock"]]
        and "Eagle3LlamaModel" not in seen["architectures"]
    )


def test_it_is_active_and_says_so_in_one_line(clean_vllm):
    seen = clean_vllm(load_plugins)
    assert seen["folders"] == {str(FORK)}
    (line,) = seen["log"]
    assert line.startswith(f"INFO vllm-eagle3 {metadata.version('vllm-eagle3')} is ")
    assert f"is active on vLLM {versions.vllm_version()}: it replaces three" in line


def test_all_other_models_resolve_to_stock_files():
    import vllm.model_executor.models as package

    fork, stock = map(Path, package.__path__)
    assert fork == FORK
    resolved = {
        name: Path(PathFinder.find_spec(name, package.__path__).origin).parent
        for name in subtree.module_names(stock)
    }
    from_fork = {name for name, folder in resolved.items() if folder != stock}
    assert from_fork == set(subtree.REPLACED)


def test_loading_twice_changes_nothing(clean_vllm):
    path, log = clean_vllm(activate_thrice)
    assert path.count(str(FORK)) == 1
    assert path[0] == str(FORK)
    assert len(log) == 1


def activate_thrice() -> tuple[list[str], list[str]]:
    import vllm.model_executor.models as package

    from vllm_eagle3.overlay import activate

    log = LogLines.attach()
    for _ in range(3):
        activate()
    return list(package.__path__), log.about_the_overlay()


@pytest.mark.parametrize("value", ["1", "true", "ON"])
def test_the_off_switch_leaves_stock_in_place(clean_vllm, value):
    seen = clean_vllm(load_plugins, env={"VLLM_EAGLE3_DISABLE": value})
    assert stays_on_stock(seen)
    (line,) = seen["log"]
    assert line.startswith("INFO")
    assert "switched off by VLLM_EAGLE3_DISABLE" in line


def test_the_off_switch_set_to_nought_is_not_off(clean_vllm):
    seen = clean_vllm(load_plugins, env={"VLLM_EAGLE3_DISABLE": "0"})
    assert seen["folders"] == {str(FORK)}


@pytest.mark.parametrize("allowed", ["", "lora_filesystem_resolver"])
def test_vllms_own_allow_list_leaves_stock_in_place(clean_vllm, allowed):
    seen = clean_vllm(load_plugins, env={"VLLM_PLUGINS": allowed})
    assert stays_on_stock(seen)
    assert seen["log"] == []


def test_vllms_own_allow_list_can_name_the_plugin(clean_vllm):
    seen = clean_vllm(load_plugins, env={"VLLM_PLUGINS": "eagle3"})
    assert seen["folders"] == {str(FORK)}


SWITCHES = (
    "VLLM_EAGLE3_DISABLE",
    "VLLM_EAGLE3_DISABLE_LOCAL_ARGMAX",
    "VLLM_EAGLE3_DISABLE_NATIVE",
)


@pytest.mark.parametrize("switches", [(), *zip(SWITCHES, strict=True), SWITCHES])
def test_vllm_accepts_the_environment_that_the_plugin_leaves(clean_vllm, switches):
    """`vllm serve --fail-on-environ-validation` rejects variables it does not know.

    Those that are not set stay unknown: they would change the keys of compiled code.
    """
    env = dict.fromkeys(switches, "1")
    assert clean_vllm(validate_environment, env=env) == sorted(switches)


def validate_environment() -> list[str]:
    from vllm import envs
    from vllm.platforms import current_platform

    load_plugins()
    # Before a config is made, as vLLM does.
    current_platform.validate_environ(hard_fail=True)
    return sorted(name for name in envs.environment_variables if "EAGLE3" in name)


def distribution(folder: Path, name: str, version: str) -> str:
    """Pretends that a distribution is installed; returns what to put on the path."""
    info = folder / f"{name}-{version}.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
    )
    return str(folder)


def load_plugins_with(path: str) -> dict[str, Any]:
    sys.path.insert(0, path)
    return load_plugins()


def test_an_unknown_vllm_keeps_its_own_files_with_one_warning(clean_vllm, tmp_path):
    seen = clean_vllm(load_plugins_with, distribution(tmp_path, "vllm", "0.99.1+cpu"))
    assert stays_on_stock(seen)
    (line,) = seen["log"]
    assert line.startswith("WARNING vllm-eagle3 ")
    assert "inactive on vLLM 0.99.1+cpu" in line
    for version in versions.SUPPORTED_VLLM:
        assert version in line


def load_plugins_with_fork(folder: str) -> dict[str, Any]:
    subtree.models_folder = lambda: Path(folder)
    return load_plugins()


def changed_fork(folder: Path, change: str) -> str:
    """Copies the fork's files and puts another line into one of them."""
    shutil.copytree(FORK, folder, dirs_exist_ok=True)
    with (folder / "llama_eagle3.py").open("a") as file:
        file.write(f"\n{change}\n")
    return str(folder)


def test_a_missing_symbol_keeps_stock_with_one_warning(clean_vllm, tmp_path):
    fork = changed_fork(tmp_path, "from vllm.config import RenamedUpstream")
    seen = clean_vllm(load_plugins_with_fork, fork)
    assert stays_on_stock(seen)
    (line,) = seen["log"]
    assert line.startswith("WARNING")
    assert "lacks what the fork imports from it: vllm.config:RenamedUpstream" in line


def test_hiding_another_file_of_vllm_keeps_stock_with_one_warning(clean_vllm, tmp_path):
    fork = changed_fork(tmp_path, "")
    (tmp_path / "llama.py").touch()
    seen = clean_vllm(load_plugins_with_fork, fork)
    assert stays_on_stock(seen)
    (line,) = seen["log"]
    assert line.startswith("WARNING")
    assert "differ in: llama" in line


def test_a_vllm_that_was_built_with_the_patches_keeps_its_files(clean_vllm, tmp_path):
    patched = changed_fork(tmp_path, "")
    seen = clean_vllm(load_plugins_beside, patched)
    assert seen["search_path"] == [seen["stock"], patched]
    (line,) = seen["log"]
    assert "this vLLM was built with the fork's patches" in line


def load_plugins_beside(folder: str) -> dict[str, Any]:
    import vllm.model_executor.models as package

    package.__path__.append(folder)
    return load_plugins()


def test_an_unforeseen_error_keeps_stock_and_does_not_escape(clean_vllm):
    seen = clean_vllm(load_plugins_with_failing_alias)
    assert stays_on_stock(seen)
    (line,) = seen["log"]
    assert line.startswith("WARNING")
    assert "RuntimeError: boom" in line


def load_plugins_with_failing_alias() -> dict[str, Any]:
    from vllm_eagle3 import draft_config

    def fail(*_: object) -> None:
        raise RuntimeError("boom")

    # The last of the changes: everything before it must be taken back.
    draft_config.watch = fail
    return load_plugins()


def test_only_the_first_of_a_tree_of_processes_says_it(clean_vllm):
    assert clean_vllm(logs_of_parent_and_child) == (1, 0)


def logs_of_parent_and_child() -> tuple[int, int]:
    import multiprocessing

    parent = load_plugins()["log"]
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        child = pool.apply(load_plugins)["log"]
    return len(parent), len(child)

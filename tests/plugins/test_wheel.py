# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""What a wheel carries, and that it works where there is no repository."""

import sys
import zipfile

import pytest

from tests.plugins.clean_process import FAMILIES, LogLines, resolved_folders
from tests.support.wheel import REPOSITORY, build, copy_sources

CARRIED = "vllm_eagle3/vllm/model_executor/models"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """Of a folder with a hyphen, pip takes the name for one with a version."""
    source = tmp_path_factory.mktemp("source")
    copy_sources(source)
    # What an earlier build may have left must not end up in the wheel.
    stale = source / "build" / "lib" / CARRIED / "removed_since.py"
    stale.parent.mkdir(parents=True)
    stale.touch()
    return build(source)


@pytest.fixture(scope="module")
def names(wheel):
    return set(zipfile.ZipFile(wheel).namelist())


def modules(folder: str) -> set[str]:
    return {path.name for path in (REPOSITORY / folder).glob("*.py")}


def test_the_wheel_carries_the_subtree_and_the_package_and_nothing_else(names):
    expected = {f"{CARRIED}/{name}" for name in modules("vllm/model_executor/models")}
    for package in ("", "/check", "/drift", "/export"):
        folder = f"vllm_eagle3{package}"
        expected |= {f"{folder}/{name}" for name in modules(folder)}
    expected.add("vllm_eagle3/drift/table.json")
    assert {f"{CARRIED}/{family}.py" for family in FAMILIES} < expected
    assert {name for name in names if ".dist-info/" not in name} == expected


def test_the_wheel_writes_nothing_under_vllm(names):
    assert [name for name in names if name.startswith("vllm/")] == []


def test_the_wheel_holds_its_licence_and_its_entry_points(wheel, names):
    info = f"{wheel.name.partition('-py3')[0]}.dist-info"
    assert {f"{info}/licenses/LICENSE", f"{info}/licenses/NOTICE"} <= names
    with zipfile.ZipFile(wheel) as archive:
        entry_points = archive.read(f"{info}/entry_points.txt").decode()
        description = archive.read(f"{info}/METADATA").decode()
    assert (
        "[vllm.general_plugins]\neagle3 = vllm_eagle3.overlay:activate" in entry_points
    )
    assert "vllm-eagle3 = vllm_eagle3.cli:main" in entry_points
    required = [
        line for line in description.splitlines() if line.startswith("Requires-Dist")
    ]
    always = [line for line in required if "; extra ==" not in line]
    assert always == ["Requires-Dist: rich>=13"]


def test_an_installed_wheel_runs_the_files_that_it_carries(clean_vllm, wheel, tmp_path):
    zipfile.ZipFile(wheel).extractall(tmp_path)
    folders, log = clean_vllm(activate_from, str(tmp_path))
    assert folders == {str(tmp_path / CARRIED)}
    assert "is active" in log[0]


def activate_from(site_packages: str) -> tuple[set[str], list[str]]:
    sys.path.insert(0, site_packages)
    from vllm_eagle3.overlay import activate

    log = LogLines.attach()
    activate()
    return resolved_folders(), log.about_the_overlay()


def test_stock_files_beside_an_installed_package_are_not_taken_for_the_fork(
    tmp_path, monkeypatch
):
    """As in site-packages, if a wheel came without the subtree."""
    from vllm_eagle3 import subtree

    stock = tmp_path / "vllm" / "model_executor" / "models"
    stock.mkdir(parents=True)
    (stock / "__init__.py").touch()
    monkeypatch.setattr(subtree, "__file__", str(tmp_path / "vllm_eagle3" / "x.py"))
    with pytest.raises(FileNotFoundError, match="reinstall vllm-eagle3"):
        subtree.models_folder()

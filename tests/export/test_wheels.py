# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""`make wheel`: what it builds, what twine says, and an environment of nothing else."""

import os
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest
import torch

from tests.support.wheel import copy_sources, environment, install
from tools.build_wheels import FOLDERS, devices_here

from .trees import installed_package

DEVICES = devices_here()
# One of the GPUs is enough to load and to look at; the others take as long again.
ONE_GPU = {"TORCH_CUDA_ARCH_LIST": "9.0"}
LIBRARIES = {
    "empty": set(),
    "cpu": {"vllm_eagle3/_native_cpu.so"},
    "cuda": {"vllm_eagle3/_native_cpu.so", "vllm_eagle3/_native_cuda.so"},
}
USE = """
from vllm_eagle3 import cli
print("status", cli.main(["status"]))
import torch
from vllm.model_executor.models import draft_vocabulary_ops as operators
logits, ids = torch.tensor([[5.0, 7.0]]), torch.tensor([1, 2])
print("file", operators.__file__)
print("token", operators.draft_argmax_to_target(logits, ids).tolist())
"""


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    """A copy, so that the repository stays clean."""
    folder = tmp_path_factory.mktemp("wheels")
    copy_sources(folder, "tools")
    return folder


@pytest.fixture(scope="module")
def distributions(source):
    """All that can be built here."""
    (source / "dist").mkdir()
    # Of an earlier version; it must neither be checked nor shipped again.
    (source / "dist" / "vllm_eagle3-0.0.1.tar.gz").write_text("old")
    done = build_wheels(source)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("PASSED") == len(DEVICES) + 1
    return source / "dist"


def build_wheels(source: Path, *arguments: object):
    tool = source / "tools" / "build_wheels.py"
    return run(sys.executable, tool, *arguments, **ONE_GPU)


def run(
    *command: object, cwd: Path | None = None, **environment: str
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        list(map(str, command)),
        cwd=cwd,
        env=os.environ | environment,
        capture_output=True,
        text=True,
    )


def test_a_source_distribution_and_a_wheel_for_any_machine_are_built(distributions):
    source, wheel = sorted(path.name for path in distributions.glob("*.*"))[::-1]
    assert wheel.startswith("vllm_eagle3-") and wheel.endswith("-py3-none-any.whl")
    assert source == wheel.removesuffix("-py3-none-any.whl") + ".tar.gz"


def test_the_wheel_works_where_nothing_else_is(distributions, tmp_path):
    (wheel,) = distributions.glob("*.whl")
    venv.create(tmp_path / "empty", with_pip=False, symlinks=True)
    python = tmp_path / "empty" / "bin" / "python"
    install(wheel, python)
    command = python.with_name("vllm-eagle3")
    assert run(command, "--version").stdout.startswith("vllm-eagle3 ")
    status = run(command, "status")
    assert status.returncode == 1
    assert "vLLM is not installed in this environment" in status.stdout
    refused = run(command, "export-patch", "--vllm", installed_package())
    assert refused.returncode == 2
    assert "comes without its tests" in refused.stderr


@pytest.mark.parametrize("device", DEVICES)
def test_each_wheel_runs_its_operators_in_an_empty_environment(
    distributions, tmp_path, device
):
    """The one for GPUs on a machine without one too: its operators for CPUs."""
    (wheel,) = (distributions / FOLDERS[device]).glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    assert {name for name in names if name.endswith(".so")} == LIBRARIES[device]
    assert wheel.name.endswith("-any.whl") == (device == "empty")
    python = environment(tmp_path / "env", wheel)
    done = run(python, "-c", USE, cwd=tmp_path, VLLM_LOGGING_LEVEL="ERROR")
    assert done.returncode == 0, done.stderr
    said = dict(line.partition(" ")[::2] for line in done.stdout.splitlines())
    assert said["status"] == "0"
    assert said["operators"].lstrip().startswith(expected(device))
    assert said["file"].startswith(str(tmp_path / "env"))
    assert said["token"] == "[2]"


def expected(device: str) -> str:
    if device == "empty":
        return "PyTorch (not built at installation)"
    with_gpu = device == "cuda" and torch.version.cuda
    return "native for cpu and cuda" if with_gpu else "native for cpu"


def test_a_fault_that_pypi_would_refuse_is_an_error(source):
    """twine looks at what was built, and its word counts."""
    (source / "README.md").write_text("")
    (source / "pyproject.toml").write_text(
        (source / "pyproject.toml").read_text().replace("README.md", "README.rst")
    )
    (source / "README.rst").write_text("`unclosed <\n\nTitle\n=\n")
    done = build_wheels(source, "empty", "--output", source / "faulty")
    assert done.returncode == 2
    assert "FAILED" in done.stdout

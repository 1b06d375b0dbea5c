# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""`make wheel`: what it builds, what twine says, and an environment of nothing else."""

import shutil
import subprocess
import sys
import venv
from pathlib import Path

import pytest

from .trees import installed_package

REPOSITORY = Path(__file__).resolve().parents[2]
SOURCES = ("vllm", "vllm_eagle3", "csrc", "tools")
FILES = ("*.toml", "*.md", "*.txt", "*.in", "setup.py", "LICENSE", "NOTICE")


@pytest.fixture(scope="module")
def distributions(tmp_path_factory):
    """Built in a copy, so that the repository stays clean."""
    folder = tmp_path_factory.mktemp("wheels")
    ignore = shutil.ignore_patterns("__pycache__", "*.so", "*.egg-info")
    for name in SOURCES:
        shutil.copytree(REPOSITORY / name, folder / name, ignore=ignore)
    for pattern in FILES:
        for path in REPOSITORY.glob(pattern):
            shutil.copy(path, folder)
    (folder / "dist").mkdir()
    # Of an earlier version; it must neither be checked nor shipped again.
    (folder / "dist" / "vllm_eagle3-0.0.1.tar.gz").write_text("old")
    done = run(sys.executable, folder / "tools" / "build_wheels.py", "empty")
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("PASSED") == 2
    return folder / "dist"


def run(*command: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(list(map(str, command)), capture_output=True, text=True)


def test_a_source_distribution_and_a_wheel_for_any_machine_are_built(distributions):
    source, wheel = sorted(path.name for path in distributions.iterdir())[::-1]
    assert wheel.startswith("vllm_eagle3-") and wheel.endswith("-py3-none-any.whl")
    assert source == wheel.removesuffix("-py3-none-any.whl") + ".tar.gz"


def test_the_wheel_works_where_nothing_else_is(distributions, tmp_path):
    (wheel,) = distributions.glob("*.whl")
    venv.create(tmp_path / "empty", with_pip=False, symlinks=True)
    python = tmp_path / "empty" / "bin" / "python"
    pip = (sys.executable, "-m", "pip", "--python", python, "install")
    done = run(*pip, "--no-deps", "--no-index", wheel)
    assert done.returncode == 0, done.stderr
    command = python.with_name("vllm-eagle3")
    assert run(command, "--version").stdout.startswith("vllm-eagle3 ")
    status = run(command, "status")
    assert status.returncode == 1
    assert "vLLM is not installed in this environment" in status.stdout
    refused = run(command, "export-patch", "--vllm", installed_package())
    assert refused.returncode == 2
    assert "comes without its tests" in refused.stderr


def test_a_fault_that_pypi_would_refuse_is_an_error(distributions):
    """twine looks at what was built, and its word counts."""
    folder = distributions.parent
    (folder / "README.md").write_text("")
    (folder / "pyproject.toml").write_text(
        (folder / "pyproject.toml").read_text().replace("README.md", "README.rst")
    )
    (folder / "README.rst").write_text("`unclosed <\n\nTitle\n=\n")
    output = folder / "faulty"
    done = run(
        sys.executable,
        folder / "tools" / "build_wheels.py",
        "empty",
        "--output",
        output,
    )
    assert done.returncode == 2
    assert "FAILED" in done.stdout

# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""Puts the forked subtree and the native operators into the wheel.

Everything else is declared in pyproject.toml. The subtree lies at upstream's
paths (``vllm/model_executor/models``) but must never be installed there, where
vLLM's own files are; so it travels as data of ``vllm_eagle3``.

The operators are built by CMake against the torch that is installed, so only with
``pip install --no-build-isolation``, and with vLLM's own variables:
``VLLM_TARGET_DEVICE`` (``cpu``, ``cuda`` for both, or ``empty`` for none),
``CUDA_HOME``, ``TORCH_CUDA_ARCH_LIST``, ``MAX_JOBS`` and ``NVCC_THREADS``. What is not
asked for by name is built if it can be: without torch, CMake or a compiler, the fork
installs all the same and computes in PyTorch.
"""

import importlib.util
import os
import runpy
import shutil
import subprocess
import sys
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_ext import build_ext
from setuptools.command.build_py import build_py

SUBTREE = Path("vllm")
PACKAGE = "vllm_eagle3"
# What each value of VLLM_TARGET_DEVICE builds.
LIBRARIES = {
    "empty": [],
    "cpu": ["_native_cpu"],
    "cuda": ["_native_cpu", "_native_cuda"],
}


class BuildWithSubtree(build_py):
    """Copies the subtree beside the package's own modules.

    An editable installation needs no copy: it finds the subtree in the
    repository.
    """

    def run(self) -> None:
        if not self.editable_mode:
            # build/ may hold files of an earlier build that exist no more.
            shutil.rmtree(Path(self.build_lib) / PACKAGE, ignore_errors=True)
        super().run()
        if not self.editable_mode:
            self._copy_subtree()

    def get_source_files(self) -> list[str]:
        # So that the source distribution carries the subtree as well.
        return [*super().get_source_files(), *map(str, self._sources())]

    def _copy_subtree(self) -> None:
        for source in self._sources():
            target = Path(self.build_lib) / PACKAGE / source
            target.parent.mkdir(parents=True, exist_ok=True)
            self.copy_file(str(source), str(target))

    def _sources(self) -> list[Path]:
        return sorted(SUBTREE.rglob("*.py"))


class BuildWithCMake(build_ext):
    """Builds the native operators, or leaves them out where that is allowed."""

    def run(self) -> None:
        try:
            self._build()
        except (OSError, subprocess.CalledProcessError) as error:
            if "VLLM_TARGET_DEVICE" in os.environ:
                raise
            self.warn(f"the native operators were not built, PyTorch serves: {error}")

    def get_outputs(self) -> list[str]:
        return [str(path) for path in self._targets() if path.exists()]

    def get_output_mapping(self) -> dict[str, str]:
        return {}

    def _build(self) -> None:
        folder = Path(self.build_temp) / "native"
        device = target_device()
        cmake = find_tool("cmake")
        if cmake is None:
            raise FileNotFoundError("cmake was not found")
        configure = [cmake, "-S", ".", "-B", str(folder)]
        configure += [f"-DPython_EXECUTABLE={sys.executable}"]
        configure += [f"-DVLLM_TARGET_DEVICE={device}"]
        ninja = find_tool("ninja")
        if ninja is not None:
            configure += ["-G", "Ninja", f"-DCMAKE_MAKE_PROGRAM={ninja}"]
        # An earlier build in this place may have been with another torch.
        shutil.rmtree(folder, ignore_errors=True)
        subprocess.run(configure, check=True)
        jobs = os.environ.get("MAX_JOBS", str(os.cpu_count() or 1))
        build = [cmake, "--build", str(folder), "--parallel", jobs]
        subprocess.run(build, check=True)
        for target in self._targets():
            target.parent.mkdir(parents=True, exist_ok=True)
            # A process may be running the one that is there: replace, never overwrite.
            fresh = target.with_suffix(".new")
            shutil.copy(folder / target.name, fresh)
            fresh.replace(target)

    def _targets(self) -> list[Path]:
        place = Path() if self.inplace or self.editable_mode else Path(self.build_lib)
        names = [extension.name.rpartition(".")[2] for extension in self.extensions]
        return [place / PACKAGE / f"{name}.so" for name in names]


class WheelForAnyPython(bdist_wheel):
    """The operators know torch's stable ABI and no Python, so any Python loads them."""

    def get_tag(self) -> tuple[str, str, str]:
        _, _, platform = super().get_tag()
        return "py3", "none", platform


def target_device() -> str:
    """What to build for; without a word from the user, what this torch can use.

    Raises:
        ValueError: ``VLLM_TARGET_DEVICE`` names nothing that can be built here.
    """
    asked = os.environ.get("VLLM_TARGET_DEVICE")
    if asked is not None:
        if asked not in LIBRARIES:
            allowed = ", ".join(LIBRARIES)
            raise ValueError(
                f"VLLM_TARGET_DEVICE is {asked!r}; vllm-eagle3 builds for one of: "
                f"{allowed}"
            )
        return asked
    if not Path("CMakeLists.txt").exists() or not can_build():
        return "empty"
    return "cuda" if torch_has_cuda() and has_nvcc() else "cpu"


def can_build() -> bool:
    compiler = os.environ.get("CXX", "c++").split()[0]
    tools = all(find_tool(name) is not None for name in ("cmake", compiler))
    return tools and importlib.util.find_spec("torch") is not None


def find_tool(name: str) -> str | None:
    """Looks beside this Python too: pip installs there, activated or not."""
    beside = Path(sys.executable).parent
    return shutil.which(name, path=f"{beside}{os.pathsep}{os.environ.get('PATH', '')}")


def torch_has_cuda() -> bool:
    """Read from torch's own file, for importing torch takes seconds."""
    spec = importlib.util.find_spec("torch")
    assert spec is not None and spec.submodule_search_locations
    file = Path(spec.submodule_search_locations[0], "version.py")
    return runpy.run_path(str(file)).get("cuda") is not None


def has_nvcc() -> bool:
    home = os.environ.get("CUDA_HOME")
    return shutil.which(str(Path(home, "bin", "nvcc")) if home else "nvcc") is not None


setup(
    cmdclass={
        "bdist_wheel": WheelForAnyPython,
        "build_ext": BuildWithCMake,
        "build_py": BuildWithSubtree,
    },
    ext_modules=[
        Extension(f"{PACKAGE}.{name}", sources=[])
        for name in LIBRARIES[target_device()]
    ],
)

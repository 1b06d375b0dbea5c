# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""Compiles and links the CUDA operators, and looks at how they access memory.

Needs nvcc (``CUDA_HOME``, or on the PATH) and any torch 2.13 or later, also one for
CPUs, and no GPU:

    make cuda-check

The PTX of each architecture must move 16 bytes at once where the kernels read and write
rows, and so must the machine code, where there is a disassembler to look at it with:
``nvdisasm`` of CUDA, or the one that Triton brings. Nothing that waits for a GPU may be
linked. On a machine with a GPU, ``make gpu-check`` tests and times the operators.
"""

import argparse
import importlib.util
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]
FOLDER = REPOSITORY / "build" / "cuda-check"
LIBRARY = "_native_cuda.so"
ARCHITECTURES = "8.0 9.0 10.0+PTX"
# What moves 16 bytes at once, and the kernels that must have it, for logits of 2 and of
# 4 bytes.
LOAD, STORE = "load", "store"
KERNELS = {"argmax_segments": (LOAD,), "widen_rows": (LOAD, STORE)}
PTX = {
    LOAD: re.compile(r"\bld\.global(\.[\w:]+)*\.v4\.[busf]32\b"),
    STORE: re.compile(r"\bst\.global(\.[\w:]+)*\.v4\.[busf]32\b"),
}
SASS = {
    LOAD: re.compile(r"\bLDG(\.\w+)*\.128\b"),
    STORE: re.compile(r"\bSTG(\.\w+)*\.128\b"),
}
PTX_KERNEL = re.compile(r"^\.(?:visible |weak )?\.?entry (\w+)\(", re.MULTILINE)
SASS_KERNEL = re.compile(r"^\.text\.(\w+):", re.MULTILINE)
# Of the CUDA runtime: these wait for the GPU, or take memory beside torch's allocator.
# CUDA graphs capture none of them.
WAITING = re.compile(r"^cuda(\w*Synchronize|Memcpy\w*|Malloc\w*|Free\w*)(@|$)")


def main(arguments: list[str] | None = None) -> int:
    """Returns 0 if all is well, 1 if not, and 2 where there is no nvcc."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--if-present", action="store_true", help="be content where nvcc is not"
    )
    options = parser.parse_args(arguments)
    nvcc = find_nvcc()
    if nvcc is None:
        print(
            "cuda-check: nvcc was not found, so the CUDA operators were not looked at; "
            "set CUDA_HOME to look at them",
            file=sys.stderr,
        )
        return 0 if options.if_present else 2
    build(nvcc)
    faults = [*faults_of_symbols(undefined_symbols()), *faults_of_code()]
    for fault in faults:
        print(f"cuda-check: {fault}", file=sys.stderr)
    if not faults:
        print(
            "cuda-check: all kernels read and write 16 bytes at once, and wait for none"
        )
    return 1 if faults else 0


def find_nvcc() -> str | None:
    home = os.environ.get("CUDA_HOME")
    return shutil.which(str(Path(home, "bin", "nvcc")) if home else "nvcc")


def build(nvcc: str) -> None:
    """With what the compiler makes on its way kept beside the library."""
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir(parents=True)
    architectures = os.environ.get("TORCH_CUDA_ARCH_LIST", ARCHITECTURES)
    configure = ["cmake", "-S", str(REPOSITORY), "-B", str(FOLDER)]
    configure += ["-DVLLM_TARGET_DEVICE=cuda", f"-DPython_EXECUTABLE={sys.executable}"]
    configure += [f"-DCMAKE_CUDA_COMPILER={nvcc}"]
    configure += [f"-DCMAKE_CUDA_FLAGS=--keep --keep-dir={FOLDER}"]
    # pip puts CMake and ninja beside this Python, activated or not.
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"
    if shutil.which("ninja", path=path):
        configure += ["-G", "Ninja"]
    jobs = os.environ.get("MAX_JOBS", str(os.cpu_count() or 1))
    compile_ = ["cmake", "--build", str(FOLDER), "--parallel", jobs]
    environment = os.environ | {"TORCH_CUDA_ARCH_LIST": architectures, "PATH": path}
    for command in (configure, [*compile_, "--target", LIBRARY.removesuffix(".so")]):
        subprocess.run(command, check=True, env=environment)


def undefined_symbols() -> list[str]:
    """What the library expects of the process that loads it, in C++ names."""
    listed = subprocess.run(
        ["nm", "--dynamic", "--undefined-only", "--demangle", str(FOLDER / LIBRARY)],
        check=True,
        capture_output=True,
        text=True,
    )
    return [line.split(maxsplit=1)[1] for line in listed.stdout.splitlines()]


def faults_of_symbols(names: list[str]) -> Iterator[str]:
    """Beyond torch's stable ABI, which is plain C, and what waits for the GPU."""
    for name in names:
        if re.search(r"\b(c10|at|torch)::", name):
            yield f"{LIBRARY} needs {name}, which is no part of torch's stable ABI"
        elif WAITING.match(name):
            yield f"{LIBRARY} calls {name.partition('@')[0]}, which CUDA graphs refuse"


def faults_of_code() -> Iterator[str]:
    """In the PTX of each architecture, and in its machine code if it can be read."""
    listings = sorted(FOLDER.glob("ops.*.ptx"))
    if not listings:
        yield f"the compiler left no PTX in {FOLDER}"
    for file in listings:
        yield from faults_in(file.read_text(), PTX, PTX_KERNEL, file.name)
        print(f"cuda-check: looked at {file.name}")
    disassembler = find_disassembler()
    if disassembler is None:
        print("cuda-check: no nvdisasm was found, so no machine code was looked at")
        return
    for file in sorted(FOLDER.glob("ops.*.cubin")):
        code = subprocess.run(
            [disassembler, str(file)], check=True, capture_output=True, text=True
        )
        yield from faults_in(code.stdout, SASS, SASS_KERNEL, file.name)
        print(f"cuda-check: looked at {file.name}")


def find_disassembler() -> str | None:
    found = shutil.which("nvdisasm")
    if found is None and (triton := importlib.util.find_spec("triton")):
        for folder in triton.submodule_search_locations or ():
            found = found or shutil.which(
                "nvdisasm", path=str(Path(folder, "backends", "nvidia", "bin"))
            )
    return found


def faults_in(
    code: str, accesses: dict[str, re.Pattern[str]], start: re.Pattern[str], where: str
) -> Iterator[str]:
    """Kernels of a listing that lack an access of 16 bytes, or are not there.

    Args:
        code: The listing.
        accesses: What the accesses look like in it.
        start: Where a kernel starts; its group is the kernel's name.
        where: What to call the listing.
    """
    _, *parts = start.split(code)
    bodies = dict(zip(parts[::2], parts[1::2], strict=True))
    for kernel, needed in KERNELS.items():
        own = {name: body for name, body in bodies.items() if kernel in name}
        if len(own) != 2:
            yield f"{where} has {len(own)} kernels called {kernel}, not 2"
        for name, body in own.items():
            for access in needed:
                if not accesses[access].search(body):
                    yield f"{where}: {name} has no {access} of 16 bytes"


if __name__ == "__main__":
    sys.exit(main())

# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""Compiles and links the CUDA operators, and looks at how they access memory.

Needs nvcc (``CUDA_HOME``, or on the PATH) and any torch 2.13 or later, also one for
CPUs, and no GPU:

    make cuda-check

On a machine with a GPU, what is built here can be put to work and tested in place:

    VLLM_TARGET_DEVICE=cuda pip install -e . --no-deps --no-build-isolation
    python -m pytest tests/native
    python -m benchmarks.draft_head --device cuda
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]
FOLDER = REPOSITORY / "build" / "cuda-check"
LIBRARY = FOLDER / "_native_cuda.so"
# PTX instructions that move 16 bytes at once, and the kernels that must have them, for
# logits of 2 and of 4 bytes.
WIDE_LOAD = re.compile(r"\bld\.global(\.nc)?\.v4\.[busf]32\b")
WIDE_STORE = re.compile(r"\bst\.global\.v4\.[busf]32\b")
EXPECTED = {
    "argmax_segments": (WIDE_LOAD,),
    "widen_rows": (WIDE_LOAD, WIDE_STORE),
}


def main() -> int:
    """Returns 0 if everything builds and each kernel accesses 16 bytes at once."""
    nvcc = find_nvcc()
    if nvcc is None:
        print("cuda-check: nvcc was not found; set CUDA_HOME", file=sys.stderr)
        return 2
    build(nvcc)
    faults = list(undefined_beyond_torch()) + faults_in(ptx(nvcc))
    for fault in faults:
        print(f"cuda-check: {fault}", file=sys.stderr)
    if not faults:
        print(f"cuda-check: {LIBRARY} is built; all kernels access 16 bytes at once")
    return 1 if faults else 0


def find_nvcc() -> str | None:
    home = os.environ.get("CUDA_HOME")
    return shutil.which(str(Path(home, "bin", "nvcc")) if home else "nvcc")


def build(nvcc: str) -> None:
    configure = ["cmake", "-S", str(REPOSITORY), "-B", str(FOLDER)]
    configure += ["-DVLLM_TARGET_DEVICE=cuda", f"-DPython_EXECUTABLE={sys.executable}"]
    configure += [f"-DCMAKE_CUDA_COMPILER={nvcc}"]
    if shutil.which("ninja"):
        configure += ["-G", "Ninja"]
    jobs = os.environ.get("MAX_JOBS", str(os.cpu_count() or 1))
    subprocess.run(configure, check=True)
    subprocess.run(["cmake", "--build", str(FOLDER), "--parallel", jobs], check=True)


def undefined_beyond_torch() -> list[str]:
    """Symbols that neither torch's stable ABI nor CUDA nor the C++ library has."""
    listed = subprocess.run(
        ["nm", "--dynamic", "--undefined-only", "--demangle", str(LIBRARY)],
        check=True,
        capture_output=True,
        text=True,
    )
    names = [line.split(maxsplit=1)[1] for line in listed.stdout.splitlines()]
    return [
        f"{LIBRARY.name} needs {name}, which is no part of torch's stable ABI"
        for name in names
        if re.search(r"\b(c10|at|torch)::", name)
    ]


def ptx(nvcc: str) -> str:
    """The PTX that is in the library, for the last of its architectures."""
    command = [nvcc, "-ptx", "-std=c++20", "-DUSE_CUDA", "-arch=compute_90", "-O3"]
    command += ["-DTORCH_TARGET_VERSION=0x020a000000000000", f"-I{torch_headers()}"]
    command += [str(REPOSITORY / "csrc" / "cuda" / "ops.cu"), "-o", "-"]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def torch_headers() -> Path:
    import torch

    return Path(torch.__file__).parent / "include"


def faults_in(code: str) -> list[str]:
    """What is missing in the kernels' PTX."""
    kernels = re.split(r"^(?=\.visible \.entry|\.entry)", code, flags=re.MULTILINE)[1:]
    faults = []
    for name, patterns in EXPECTED.items():
        found = [kernel for kernel in kernels if name in kernel.partition("(")[0]]
        if len(found) != 2:
            faults.append(f"{len(found)} kernels are called {name}, not 2")
        faults += [
            f"{kernel.partition('(')[0].split()[-1]} has no {pattern.pattern}"
            for kernel in found
            for pattern in patterns
            if not pattern.search(kernel)
        ]
    return faults


if __name__ == "__main__":
    sys.exit(main())

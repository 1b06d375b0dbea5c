# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""Builds the fork's distributions and checks what PyPI would say to them.

    make wheel

makes `dist/` with a source distribution and the wheel of Python files for any machine,
`dist/cpu/` with the wheel that has the native operators for CPUs, and `dist/cuda/` with
those for NVIDIA GPUs as well, where nvcc is found. The last two run on machines like
this one; PyPI takes the first two files.
"""

import argparse
import os
import shutil
import subprocess
import sys
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent
# By what VLLM_TARGET_DEVICE says, as vLLM's own build understands it.
FOLDERS = {"empty": "", "cpu": "cpu", "cuda": "cuda"}


def build(device: str, folder: Path) -> None:
    """Builds the wheel for a device into ``folder``, and for none the source as well.

    Raises:
        subprocess.CalledProcessError: if that fails; what went wrong is shown above.
    """
    command = [sys.executable, "-m", "build", "--no-isolation", "--wheel"]
    if device == "empty":
        command.append("--sdist")
    command += ["--outdir", str(folder), str(REPOSITORY)]
    environment = os.environ | {"VLLM_TARGET_DEVICE": device}
    subprocess.run(command, check=True, env=environment)


def check(folder: Path) -> None:
    """Lets twine look at every distribution below ``folder``.

    Raises:
        subprocess.CalledProcessError: if it finds a fault.
    """
    files = [str(path) for path in sorted(folder.rglob("vllm_eagle3-*"))]
    subprocess.run(
        [sys.executable, "-m", "twine", "check", "--strict", *files], check=True
    )


def devices_here() -> list[str]:
    """What can be built on this machine."""
    home = os.environ.get("CUDA_HOME")
    nvcc = shutil.which(str(Path(home, "bin", "nvcc")) if home else "nvcc")
    return ["empty", "cpu", "cuda"] if nvcc else ["empty", "cpu"]


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument(
        "devices",
        nargs="*",
        metavar="DEVICE",
        help=f"{', '.join(FOLDERS)} (default: all that can be built here)",
    )
    parser.add_argument("--output", type=Path, default=REPOSITORY / "dist")
    options = parser.parse_args()
    unknown = [device for device in options.devices if device not in FOLDERS]
    if unknown:
        parser.error(f"{unknown[0]} is none of {', '.join(FOLDERS)}")
    output = options.output.absolute()
    try:
        for device in options.devices or devices_here():
            folder = output / FOLDERS[device]
            # Files of an earlier version would be checked and shipped with these.
            for old in folder.glob("vllm_eagle3-*"):
                old.unlink()
            build(device, folder)
        check(output)
    except subprocess.CalledProcessError as error:
        print(f"wheel: {error}; see above", file=sys.stderr)
        return 2
    print("\n".join(str(path) for path in sorted(output.rglob("vllm_eagle3-*"))))
    return 0


if __name__ == "__main__":
    sys.exit(main())

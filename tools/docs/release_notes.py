# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""Prints what CHANGELOG.md says about a release, if all places agree on its version.

python tools/docs/release_notes.py v0.1.0
"""

import argparse
import re
import sys
import tomllib
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent.parent


def release_notes(tag: str, repository: Path = REPOSITORY) -> str:
    """Returns the notes of a release.

    Args:
        tag: ``v`` and the version.
        repository: Where pyproject.toml, CITATION.cff and CHANGELOG.md are.

    Raises:
        ValueError: One of them is not ready for this release.
    """
    version = tag.removeprefix("v")
    for name, found in _versions(repository).items():
        if tag != f"v{found}":
            raise ValueError(f"the tag is {tag}, but {name} has version {found}")
    changelog = (repository / "CHANGELOG.md").read_text(encoding="utf-8")
    section = re.search(
        rf"^## \[{re.escape(version)}\] - \d{{4}}-\d\d-\d\d\n(.*?)(?=^## |^\[|\Z)",
        changelog,
        re.MULTILINE | re.DOTALL,
    )
    if section is None:
        raise ValueError(
            f"CHANGELOG.md has no section `## [{version}] - YYYY-MM-DD`; rename "
            "`[Unreleased]` to it"
        )
    if not section[1].strip():
        raise ValueError(f"CHANGELOG.md says nothing about {version}")
    return section[1].strip()


def _versions(repository: Path) -> dict[str, str]:
    project = tomllib.loads((repository / "pyproject.toml").read_text("utf-8"))
    citation = (repository / "CITATION.cff").read_text(encoding="utf-8")
    cited = re.search(r"^version: (\S+)$", citation, re.MULTILINE)
    return {
        "pyproject.toml": project["project"]["version"],
        "CITATION.cff": cited[1] if cited else "none",
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("tag", help="such as v0.1.0")
    try:
        print(release_notes(parser.parse_args().tag))
    except ValueError as error:
        print(f"release_notes: {error}.", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())

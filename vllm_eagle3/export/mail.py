# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""Commits as mails: git makes them, in a repository that exists for no longer."""

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

_IDENTITY = re.compile(r"(?P<name>.*) <(?P<email>[^>]*)> ")


@dataclass(frozen=True)
class Commit:
    """One patch of a series.

    Attributes:
        message: Subject, an empty line, body.
        files: What the commit writes: path from the root to text.
    """

    message: str
    files: Mapping[str, str]


def write(
    base: Mapping[str, str], commits: Iterable[Commit], output: Path, tree: Path
) -> None:
    """Writes a mail for each commit into ``output``.

    Args:
        base: The files that the first commit finds, as far as any commit changes them.
        output: An empty folder.
        tree: Where git is asked for the user's name: a checkout may have its own.

    Raises:
        ValueError: if git is missing, or does not know its user.
    """
    git = _Git(tree)
    with tempfile.TemporaryDirectory(prefix="vllm-eagle3-export-") as folder:
        git.run(folder, "init", "--quiet")
        git.commit(folder, Commit("base", base))
        for commit in commits:
            git.commit(folder, commit)
        options = ("--zero-commit", "--numbered", "--no-renames", "--quiet")
        last = git.run(folder, "rev-list", "--max-parents=0", "HEAD").strip()
        git.run(folder, "format-patch", *options, "-o", str(output.absolute()), last)


class _Git:
    """git without the user's settings, which may bend patches, but in his name."""

    def __init__(self, tree: Path) -> None:
        if shutil.which("git") is None:
            raise ValueError("git was not found; install it and try again")
        ask = ["git", "-C", str(tree), "var", "GIT_AUTHOR_IDENT"]
        done = subprocess.run(ask, capture_output=True, text=True)
        identity = _IDENTITY.match(done.stdout)
        if done.returncode != 0 or identity is None:
            raise ValueError(
                "git does not know whom the patches come from; set `git config "
                "--global user.name` and `user.email`"
            )
        self._environment = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith("GIT_")
        } | {
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_CONFIG_NOSYSTEM": "1",
            **_as_variables("AUTHOR", identity),
            **_as_variables("COMMITTER", identity),
        }

    def run(self, folder: str, *arguments: str, stdin: str = "") -> str:
        done = subprocess.run(
            ["git", *arguments],
            cwd=folder,
            env=self._environment,
            input=stdin,
            capture_output=True,
            text=True,
            encoding="utf-8",
        )
        if done.returncode != 0:
            raise ValueError(f"git {arguments[0]} failed: {done.stderr.strip()}")
        return done.stdout

    def commit(self, folder: str, commit: Commit) -> None:
        for name, text in commit.files.items():
            path = Path(folder, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(text.encode("utf-8"))
        self.run(folder, "add", "--all", "--force")
        self.run(folder, "commit", "--quiet", "--file", "-", stdin=commit.message)


def _as_variables(role: str, identity: re.Match[str]) -> dict[str, str]:
    return {
        f"GIT_{role}_NAME": identity["name"],
        f"GIT_{role}_EMAIL": identity["email"],
    }

# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""``vllm-eagle3 status``: what a vLLM started in this environment would run."""

import argparse
import importlib.util
from dataclasses import dataclass

from vllm_eagle3 import __version__, native, overlay, subtree, versions


@dataclass(frozen=True)
class Status:
    """What there is to say about an environment."""

    vllm: str | None
    torch: str | None
    outcome: overlay.Outcome
    files: dict[str, str]

    @property
    def active(self) -> bool:
        return self.outcome.active


def add_parser(commands: "argparse._SubParsersAction") -> None:
    """Adds the sub-command to the command line."""
    parser = commands.add_parser(
        "status",
        help="show which model files EAGLE-3 drafts would use here",
        description=(
            "Loads vLLM's plugins as vLLM does and shows which file each of the "
            "three replaced modules resolves to. Exits with 0 if the overlay is "
            "active, with 1 if stock files would be used."
        ),
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Prints the status; returns 0 only if the overlay is active."""
    del args
    status = inspect_environment()
    print(describe(status))
    return 0 if status.active else 1


def inspect_environment() -> Status:
    """Loads vLLM's plugins and looks at what has become of the three modules."""
    torch = versions.installed("torch")
    spec = importlib.util.find_spec("vllm")
    # In the repository's root, the subtree's folder would pass for a package.
    if spec is None or spec.origin is None:
        outcome = overlay.Outcome(False, "vLLM is not installed in this environment")
        return Status(None, torch, outcome, {})
    files: dict[str, str] = {}
    try:
        from vllm.plugins import load_general_plugins

        load_general_plugins()
        files = {name: _resolved_file(name) for name in subtree.REPLACED_MODULES}
        outcome = overlay.outcome()
    except Exception as error:
        # Whatever is wrong with this vLLM (such as a CUDA torchvision beside a CPU
        # torch), saying so is this command's job.
        reason = f"vLLM cannot be imported: {type(error).__name__}: {error}"
        outcome = overlay.Outcome(False, reason)
    return Status(versions.vllm_version(), torch, outcome, files)


def _resolved_file(module: str) -> str:
    spec = importlib.util.find_spec(module)
    return spec.origin if spec is not None and spec.origin else "not found"


def describe(status: Status) -> str:
    """Returns the status as text for people."""
    lines = [
        f"vllm-eagle3  {__version__}",
        f"vLLM         {status.vllm or 'not installed'}",
        f"torch        {status.torch or 'not installed'}",
        f"combination  {_combination(status)}",
        f"overlay      {'active' if status.active else 'inactive'}",
    ]
    if status.active:
        lines.append(f"operators    {native.load()}")
    else:
        lines.append(f"reason       {status.outcome.reason}")
    lines += [f"{name}\n    {file}" for name, file in status.files.items()]
    return "\n".join(lines)


def _combination(status: Status) -> str:
    extent = versions.extent(status.vllm, status.torch)
    if extent == versions.EVERYTHING:
        return "tested"
    if extent is not None:
        return f"tested in part ({extent})"
    tested = "; ".join(
        f"vLLM {known.vllm} with torch {known.torch}, {known.extent}"
        for known in versions.SUPPORTED
    )
    return f"not tested (tested: {tested})"

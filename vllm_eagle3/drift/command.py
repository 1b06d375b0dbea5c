# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""``vllm-eagle3 drift``: what the fork rests on in a vLLM, and what of it has moved."""

import argparse
import importlib.util
import json
from dataclasses import asdict
from pathlib import Path

from vllm_eagle3 import vllm_tree
from vllm_eagle3.drift.compare import Finding, compare
from vllm_eagle3.drift.table import Table
from vllm_eagle3.versions import listed


def add_parser(commands: "argparse._SubParsersAction") -> None:
    """Adds the sub-command to the command line."""
    parser = commands.add_parser(
        "drift",
        help="say what a vLLM has moved of the things that this fork rests on",
        description=(
            "Compares a vLLM with every name, signature and file that this fork uses "
            "of it. The tree is read, never imported. Exits with 0 if nothing has "
            "moved, with 1 if something has, with 2 if there is no vLLM."
        ),
    )
    parser.add_argument(
        "--vllm",
        type=Path,
        metavar="PATH",
        help="a checkout, a site-packages folder or a folder vllm (default: the "
        "installed vLLM)",
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Prints the findings; returns 1 if there are any."""
    tree = vllm_tree.find(args.vllm or _installed())
    table = Table.load()
    findings = compare(tree.package, table)
    if args.json:
        print(
            json.dumps(
                {
                    "vllm": tree.version,
                    "path": str(tree.package),
                    "compared_with": table.versions,
                    "entries": len(table.entries),
                    "findings": [asdict(finding) for finding in findings],
                },
                indent=2,
            )
        )
    else:
        print(describe(tree.label, table, findings))
    return 1 if findings else 0


def _installed() -> Path:
    spec = importlib.util.find_spec("vllm")
    if spec is None or spec.origin is None:
        raise ValueError("vLLM is not installed here; name one with --vllm PATH")
    return Path(spec.origin).parent


def describe(label: str, table: Table, findings: list[Finding]) -> str:
    """Returns the findings as text for people."""
    versions = listed(table.versions)
    count = f"{len(table.entries)} names and files that this fork rests on"
    if not findings:
        return f"{label}: none of the {count} has moved since vLLM {versions}."
    lines = [
        f"{label}: {len(findings)} of the {count} moved since vLLM {versions}.",
        "",
    ]
    for finding in findings:
        lines.append(finding.name)
        lines.append(f"    {finding.what}")
        if finding.why:
            lines.append(f"    used for: {finding.why}")
        lines.append(f"    touches: {', '.join(finding.files)}")
    touched = sorted({file for finding in findings for file in finding.files})
    return "\n".join([*lines, "", f"Files to look at: {', '.join(touched)}"])

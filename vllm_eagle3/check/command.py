# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""The sub-command: arguments in, report out."""

import argparse
import json
import sys
import tempfile
from pathlib import Path

_EXAMPLES = """\
examples:
  vllm-eagle3 check ./my-draft --target ./Llama-3.1-8B-Instruct
  vllm-eagle3 check yuhuili/EAGLE3-LLaMA3.1-Instruct-8B --revision main \\
      --target meta-llama/Llama-3.1-8B-Instruct
  vllm-eagle3 check ./my-draft --target ./my-target --json | jq .verdict
  vllm-eagle3 check ./my-draft --target ./my-target --strict || exit 1   # in CI

exit codes:
  0  the server would serve the draft (with --strict: without a warning)
  1  it would serve it, with warnings (only with --strict)
  2  it would refuse it, or the check could not be made
"""


def add_parser(commands: "argparse._SubParsersAction") -> None:
    """Adds the sub-command to the command line."""
    parser = commands.add_parser(
        "check",
        help="tell whether a draft would be served, and how, without weights or GPU",
        description=(
            "Runs the server's own rules over a draft's config and tensor names, and "
            "says what the server would say. Reads configs and headers and the "
            "vocabulary map, from folders or from the Hub; no weights, no GPU."
        ),
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("draft", metavar="DRAFT", help="folder or Hub id of the draft")
    parser.add_argument(
        "--target",
        required=True,
        help="folder or Hub id of the model it drafts for; its config.json is enough",
    )
    parser.add_argument("--revision", help="branch, tag or commit of DRAFT on the Hub")
    parser.add_argument("--target-revision", help="the same for the target")
    parser.add_argument(
        "--tokens",
        type=_positive,
        metavar="N",
        help="num_speculative_tokens (default: what the draft's config says, or 3)",
    )
    parser.add_argument(
        "--max-model-len",
        type=_positive,
        metavar="N",
        help="as in vllm serve (default: what the target's config says)",
    )
    parser.add_argument(
        "--trust-remote-code",
        action="store_true",
        help="as in vllm serve: run config code that comes with a model",
    )
    parser.add_argument(
        "--json", action="store_true", help="print the report as JSON, for machines"
    )
    parser.add_argument(
        "--strict", action="store_true", help="exit with 1 if there are warnings"
    )
    parser.set_defaults(run=run)


def _positive(text: str) -> int:
    value = int(text)
    if value <= 0:
        raise argparse.ArgumentTypeError(f"{value} is not a positive number of tokens")
    return value


def run(args: argparse.Namespace) -> int:
    """Checks, prints, and returns the exit code.

    Raises:
        ValueError: there is nothing to check, in words for the user.
    """
    # Nothing heavy at the top: `vllm-eagle3 --help` has to be quick.
    from vllm_eagle3.check import render, runtime, source

    clock = runtime.Clock()
    with tempfile.TemporaryDirectory(prefix="vllm-eagle3-check-") as scratch:
        # Mistakes that show at once first, for importing vLLM takes seconds.
        source.refuse_at_sight("DRAFT", args.draft, args.revision)
        source.refuse_at_sight("--target", args.target, args.target_revision)
        runtime.import_vllm(clock)
        from vllm_eagle3.check import inspection

        draft = source.draft_folder(args.draft, args.revision, Path(scratch))
        target = source.target_folder(args.target, args.target_revision)
        options = inspection.Options(
            args.tokens, args.trust_remote_code, args.max_model_len
        )
        report = inspection.inspect(draft, target, options, clock)
    if args.json:
        print(json.dumps(report.to_json(), indent=2))
    else:
        render.show(report, sys.stdout)
    return report.exit_code(strict=args.strict)

# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""Counts accepted draft tokens for every vocabulary, and checks that the remap is free.

Eighty questions, temperature 0, three draft tokens, and one engine after the other: the
draft with the full vocabulary, with the remap that vLLM PR #53458 removed put back,
with the vocabulary size left out, with a `d2t` of zeros, and with a reduced vocabulary;
with this fork and with stock vLLM, on both model runners. All but the last must count
exactly the same, and every answer must be the one without speculation. Otherwise this
says what differs, and exits with 1.

    make acceptance
    python -m benchmarks.acceptance --output build/acceptance
"""

import argparse
import json
import sys
from pathlib import Path

from tqdm import tqdm

from .experiment import checks, launch, plot, prompts, publish, report, rows, table


def main() -> int:
    options = parse()
    output: Path = options.output
    missing = [name for name in needed() if not (options.models / name).is_dir()]
    if missing:
        print(
            f"{options.models} lacks {', '.join(missing)}; run `make drafts`.",
            file=sys.stderr,
        )
        return 1
    groups = rows.short_form() if options.short else rows.long_form()
    try:
        results = measure(groups, options.models, output / "engines")
    except launch.GroupFailed as error:
        print(f"acceptance: {error}", file=sys.stderr)
        return 1
    faults = checks.all_faults(results)
    write(output, report.report(results, options.models, faults))
    (output / "acceptance.md").write_text(table.tables(results))
    plot.draw(results, output / "acceptance.svg")
    print(f"\n{table.tables(results)}\nWritten to {output}.")
    for fault in faults:
        print(f"acceptance: {fault}", file=sys.stderr)
    if faults:
        return 1
    print("Rows of equal logits count the same; no answer depends on speculation.")
    if options.publish:
        publish.publish(output)
    return 0


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--output",
        type=Path,
        default=launch.REPOSITORY / "build" / "acceptance",
        help="folder for the report, the table, the plot and the logs",
    )
    parser.add_argument(
        "--models",
        type=Path,
        default=launch.MODELS,
        help="folder with `target` and the drafts (default: what make drafts builds)",
    )
    parser.add_argument(
        "--short", action="store_true", help="eight questions, as in the tests"
    )
    parser.add_argument(
        "--publish",
        action="store_true",
        help="if all is well, write the figures into docs/",
    )
    options = parser.parse_args()
    if options.short and options.publish:
        parser.error("--publish is for the long form")
    return options


def needed() -> list[str]:
    """Returns the model folders that the rows use."""
    return ["target", *(f"draft-{name}" for name in rows.VOCABULARIES)]


def measure(
    groups: list[rows.Group], models: Path, folder: Path
) -> list[report.RowResult]:
    """Runs all rows with a progress bar that counts answers."""
    questions = prompts.load_prompts(max(group.form.prompts for group in groups))
    chats = prompts.as_chat(questions, models / "target")
    total = sum(
        group.form.prompts for group in groups for row in group.rows if not row.refusal
    )
    with tqdm(total=total, unit="answer", smoothing=0.05) as bar:
        listener = launch.Listener(answers=bar.update, row=bar.write)
        return launch.Experiment(chats, folder, models, listener).run(groups)


def write(output: Path, content: dict) -> None:
    text = json.dumps(content, indent=1) + "\n"
    (output / "acceptance.json").write_text(text)


if __name__ == "__main__":
    sys.exit(main())

# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""Runs one group of rows: `python -m benchmarks.experiment.worker job.json out.json`.

vLLM decides much when it is imported, so whatever differs by environment gets a
process of its own. `launch.py` writes the job and reads what is printed.
"""

import argparse
import io
import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from .rows import Form, Group, Row

# Beginnings of the lines that are meant for launch.py.
ROW_DONE = "acceptance-row:"
ANSWERS_DONE = "acceptance-answers:"


def main() -> None:
    """Run the group's rows in order and write what they gave as one JSON list."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("job", type=Path, help="JSON file that launch.py wrote")
    parser.add_argument("results", type=Path, help="JSON file to write")
    arguments = parser.parse_args()
    job = json.loads(arguments.job.read_text())
    group = group_from(job["group"])
    if group.runner == "v2":
        from tests.e2e import v2_on_cpu

        v2_on_cpu.enable()
    run(group, Path(job["models"]), job["prompts"], arguments.results)


def run(group: Group, models: Path, prompts: list[list[int]], file: Path) -> None:
    """Runs the rows, and writes the results after each."""
    # After the environment is set: this imports vLLM.
    from .engine import run_row
    from .results import write_results

    results = []
    for row in group.rows:
        result = run_row(row, group.form, models, prompts, answer_counter())
        results.append(result)
        write_results(results, file)
        outcome = f"{result.output_tokens} tokens"
        if result.error:
            outcome = result.error.splitlines()[0][:120]
        length = f"{row.name}, up to {group.form.max_tokens} tokens"
        print(f"{ROW_DONE} {length}: {outcome} ({result.seconds:.0f} s)", flush=True)


def answer_counter() -> Any:
    """Returns a kind of `tqdm` that tells launch.py about each finished answer."""
    from tqdm import tqdm

    class AnswerCounter(tqdm):
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            super().__init__(*args, **kwargs | {"file": io.StringIO()})

        def update(self, n: float | None = 1) -> bool | None:
            # vLLM has a bar for its prompts too, which wraps an iterable.
            if self.iterable is None:
                print(f"{ANSWERS_DONE} {int(n or 0)}", flush=True)
            return super().update(n)

    return AnswerCounter


def job_for(group: Group, models: Path, prompts: list[list[int]]) -> str:
    """Returns a job file's text."""
    return json.dumps(
        {"group": asdict(group), "models": str(models), "prompts": prompts}
    )


def group_from(data: dict[str, Any]) -> Group:
    """Returns the group that `job_for` wrote."""
    rows = tuple(Row(**row) for row in data["rows"])
    return Group(rows, Form(**data["form"]))


if __name__ == "__main__":
    main()

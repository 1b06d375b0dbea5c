# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""Builds, tests and times the native operators on the GPU at hand, in five minutes.

    make gpu-check BACKEND=cuda
    python tools/gpu_check.py --device cpu --short

The second goes the same way without a GPU, to see that the way is free. Each stage runs
in a process of its own, and a stage that fails does not keep the next from being tried:

    build    the operators of this checkout, for this GPU's architecture
    tests    parity with PyTorch bit for bit, dispatch, memory; on the CPU and the GPU
    graphs   nothing waits for the GPU, and CUDA graphs capture and replay both
    times    against stock vLLM and a plain copy

Prints a summary and writes it, with all figures, to build/gpu-check/report.json.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parents[1]
FOLDER = REPOSITORY / "build" / "gpu-check"
TESTS = (
    "test_operators.py",
    "test_registration.py",
    "test_steps.py",
    "test_dispatch.py",
)
# All stages together.
LIMIT_S = 290


@dataclass(frozen=True)
class Stage:
    name: str
    command: tuple[str, ...]
    environment: dict[str, str]


@dataclass(frozen=True)
class Outcome:
    """What became of a stage; ``problem`` is empty if all went well."""

    stage: str
    seconds: float
    problem: str = ""


@dataclass(frozen=True)
class Goal:
    """A figure to reach, and the figure found.

    Attributes:
        what: Operator, draft and batch.
        at_least: Whether more is better.
    """

    what: str
    found: float
    limit: float
    at_least: bool

    @property
    def is_reached(self) -> bool:
        if self.at_least:
            return self.found >= self.limit
        return self.found <= self.limit

    def __str__(self) -> str:
        bound = "at least" if self.at_least else "at most"
        verdict = "reached" if self.is_reached else "MISSED"
        return f"{self.what}: {self.found:.2f} ({bound} {self.limit:g}: {verdict})"


def main(arguments: list[str] | None = None) -> int:
    """Returns 0 if all stages went well and all goals are reached."""
    options = parse(arguments)
    if options.device == "cuda" and shutil.which("nvidia-smi") is None:
        print(
            "gpu-check: no NVIDIA GPU was found on this machine; --device cpu goes the "
            "same way without one",
            file=sys.stderr,
        )
        return 2
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir(parents=True)
    end = time.monotonic() + LIMIT_S
    outcomes = [run(stage, end) for stage in stages(options.device, options.short)]
    measured = read_times()
    goals = list(goals_of(measured.get("rows", ()), options.device))
    report: dict[str, Any] = {"stages": [asdict(outcome) for outcome in outcomes]}
    report["goals"] = [asdict(goal) for goal in goals]
    (FOLDER / "report.json").write_text(json.dumps(report | measured, indent=1))
    print("\n".join(summary(outcomes, goals, measured.get("machine", {}))))
    problems = any(outcome.problem for outcome in outcomes)
    return 1 if problems or not all(goal.is_reached for goal in goals) else 0


def parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument(
        "--short", action="store_true", help="few sizes and repetitions"
    )
    return parser.parse_args(arguments)


def stages(device: str, short: bool) -> Iterator[Stage]:
    building = {"VLLM_TARGET_DEVICE": device}
    if device == "cuda" and "TORCH_CUDA_ARCH_LIST" not in os.environ:
        building["TORCH_CUDA_ARCH_LIST"] = architecture()
    python = sys.executable
    setup = (python, "setup.py", "--quiet", "build_ext", "--inplace")
    yield Stage("build", setup, building)
    tests = [str(Path("tests", "native", name)) for name in TESTS]
    selection = ("-k", "all_sizes or steps") if short else ()
    pytest = (python, "-m", "pytest", "-q", "--show-capture=no", *tests, *selection)
    yield Stage("tests", pytest, {})
    steps = (python, "-m", "tools.gpu_steps")
    yield Stage("graphs", (*steps, "graphs", device), {})
    times = (*steps, "times", device, str(FOLDER / "times.json"))
    yield Stage("times", (*times, "--short") if short else times, {})


def architecture() -> str:
    """The GPU's, as TORCH_CUDA_ARCH_LIST has it: 9.0."""
    query = ["nvidia-smi", "--query-gpu=compute_cap", "--format=csv,noheader"]
    found = subprocess.run(query, check=True, capture_output=True, text=True)
    return found.stdout.splitlines()[0].strip()


def run(stage: Stage, end: float) -> Outcome:
    """Runs a stage until ``end`` at most; what it prints goes to the terminal."""
    print(f"gpu-check: {stage.name}", flush=True)
    start = time.monotonic()
    problem = ""
    try:
        subprocess.run(
            stage.command,
            cwd=REPOSITORY,
            env=os.environ | stage.environment,
            check=True,
            timeout=max(1.0, end - start),
        )
    except subprocess.TimeoutExpired:
        problem = f"was not done when {LIMIT_S} s were over"
    except (OSError, subprocess.CalledProcessError) as error:
        problem = str(error)
    return Outcome(stage.name, round(time.monotonic() - start, 1), problem)


def read_times() -> dict[str, Any]:
    file = FOLDER / "times.json"
    return json.loads(file.read_text()) if file.exists() else {}


def goals_of(rows: Any, device: str) -> Iterator[Goal]:
    """The figures that there are goals for, of the rows of native operators."""
    speedups = {"cuda": {"float32": 3.0, "bfloat16": 3.0}}
    speedup = speedups.get(device, {"float32": 25.0, "bfloat16": 40.0})
    of_copy = 1.2 if device == "cuda" else 1.25
    for row in rows:
        draft, target, _ = row["sizes"].split("/")
        if row["step"] != "ours, native" or draft == target:
            continue
        case = f"{draft}/{target} {row['dtype']} B={row['batch']}"
        if row["kind"] == "token from logits":
            found, least = row["speedup"]["median"], speedup[row["dtype"]]
            yield Goal(f"greedy, times stock, {case}", found, least, at_least=True)
        elif row["kind"] == "wide from logits":
            found = row["of_base"]["median"]
            what = f"widening, of a plain copy, {case}"
            yield Goal(what, found, of_copy, at_least=False)


def summary(
    outcomes: list[Outcome], goals: list[Goal], machine: dict[str, str]
) -> Iterator[str]:
    yield "gpu-check: " + ", ".join(f"{key} {value}" for key, value in machine.items())
    for outcome in outcomes:
        verdict = outcome.problem or "ok"
        yield f"gpu-check: {outcome.stage:8}{outcome.seconds:6.1f} s  {verdict}"
    if not goals:
        yield "gpu-check: nothing was timed"
    yield from (f"gpu-check: {goal}" for goal in goals)
    yield f"gpu-check: all figures are in {FOLDER / 'report.json'}"


if __name__ == "__main__":
    sys.exit(main())

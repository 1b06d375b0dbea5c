# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""How the benchmarks of speed measure and judge, not what they find."""

import json
import sys
from dataclasses import asdict, replace
from pathlib import Path

import pytest
import torch

from benchmarks import output
from benchmarks.head import results as head
from benchmarks.head.cases import Case, Sizes
from benchmarks.head.measuring import COPY, Plan, tails
from benchmarks.head.memory import peak_bytes
from benchmarks.head.timing import Patience, interleaved
from benchmarks.head.variants import NATIVE, PYTORCH, Step, Ways
from benchmarks.page import goals, publish
from benchmarks.page.reports import Reports
from benchmarks.serving.plan import FORK, STOCK, Load, order
from benchmarks.serving.results import Measured
from benchmarks.serving.results import Row as ServingRow
from benchmarks.spread import Spread
from benchmarks.starting.results import Row as StartingRow

from .made_up_speed import exactly, reports

REDUCED = Case(Sizes(64, 160, 16), 3, "bfloat16")
FULL = Case(Sizes(160, 160, 16), 3, "float32")


def test_a_spread_is_median_and_quartiles() -> None:
    assert Spread.of([5.0, 1.0, 3.0, 2.0, 4.0]) == Spread(3.0, 2.0, 4.0, 5)
    assert Spread.of([7.0]) == Spread(7.0, 7.0, 7.0, 1)


def test_ratios_are_of_measurements_of_the_same_round() -> None:
    # The quotient of the medians would be 1.
    ratio = Spread.of_ratios([2.0, 20.0, 200.0], [1.0, 20.0, 100.0])

    assert ratio.median == 2.0
    with pytest.raises(ValueError, match="argument 2 is longer"):
        Spread.of_ratios([1.0], [1.0, 2.0])


def test_steps_are_timed_in_turn() -> None:
    ran: list[str] = []
    steps = {name: Step(lambda name=name: ran.append(name)) for name in "ab"}

    times = interleaved(steps, "cpu", Patience(seconds=0, least=3, most=5))

    assert ran == list("ab" * 4)  # the first pair warms up
    assert [len(times[name]) for name in "ab"] == [3, 3]


def test_peak_bytes_count_what_is_allocated_at_a_time() -> None:
    def one_after_the_other() -> torch.Tensor:
        torch.zeros(1000, dtype=torch.int64)
        return torch.zeros(500, dtype=torch.int64)

    def both() -> tuple[torch.Tensor, torch.Tensor]:
        return torch.zeros(1000, dtype=torch.int64), torch.zeros(500)

    assert 8000 <= peak_bytes(Step(one_after_the_other), "cpu") < 8200
    assert 10000 <= peak_bytes(Step(both), "cpu") < 10200


@pytest.mark.parametrize("case", [REDUCED, FULL], ids=str)
def test_all_ways_find_the_same(case: Case) -> None:
    logits = torch.randn(case.batch, case.sizes.draft).to(case.torch_dtype)
    ways = Ways(case, lambda rows: rows, "cpu")

    tokens = [step.run() for step in ways.greedy(logits).values()]
    wide = [step.run() for step in ways.wide(logits).values()]

    assert all(torch.equal(found, tokens[0]) for found in tokens)
    assert all(torch.equal(found, wide[0]) for found in wide)
    assert wide[0].shape == (case.batch, case.sizes.target)


def test_the_step_in_pytorch_runs_no_native_operator(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from vllm.model_executor.models import draft_vocabulary_ops as ops

    # Everything claims to be native, and nothing is.
    monkeypatch.setattr(ops, "_is_native", lambda name, logits: True)
    monkeypatch.setattr(torch.ops, "vllm_eagle3", None)
    ways = Ways(REDUCED, lambda rows: rows, "cpu")
    ways._native = True
    steps = ways.greedy(torch.randn(3, 64))

    with steps[PYTORCH].operators():
        assert steps[PYTORCH].run().shape == (3,)
    with steps[NATIVE].operators(), pytest.raises(AttributeError):
        steps[NATIVE].run()


def test_a_reduced_case_has_rows_of_both_kinds_and_a_floor() -> None:
    plan = Plan("cpu", tails=Patience(seconds=0, least=2, most=2))

    rows = list(tails(REDUCED, plan))

    kinds = {row.kind for row in rows}
    copy = next(row for row in rows if row.step == COPY)
    assert kinds == {head.TOKEN, head.WIDE}
    assert copy.of_base is not None and copy.of_base.median == 1.0
    assert all(row.floor_seconds for row in rows)
    assert all(row.peak_bytes is not None for row in rows)


def test_a_full_case_has_no_copy_to_be_held_against() -> None:
    plan = Plan("cpu", tails=Patience(seconds=0, least=2, most=2))

    wide = [row for row in tails(FULL, plan) if row.kind == head.WIDE]

    assert COPY not in {row.step for row in wide}
    assert {row.peak_bytes for row in wide} == {0}


def test_who_goes_first_changes_from_round_to_round() -> None:
    assert [order(number)[0] for number in range(4)] == [STOCK, FORK, STOCK, FORK]


def test_a_serving_row_compares_within_rounds() -> None:
    def pair(stock: float, fork: float) -> dict[str, Measured]:
        return {
            STOCK: Measured(stock, 0.1, 10, 5),
            FORK: Measured(fork, 0.1, 10, 7),
        }

    row = ServingRow.of("full", Load(4, 8, 32), [pair(10, 11), pair(100, 110)])

    assert row.ratio.median == pytest.approx(1.1)
    assert (row.stock.acceptance_length, row.fork.acceptance_length) == (1.5, 1.7)


def test_a_starting_row_subtracts_within_pairs() -> None:
    row = StartingRow.of("import", "plugins", [1.0, 5.0], [1.5, 5.5])

    assert row.added == Spread(0.5, 0.5, 0.5, 2)


def test_reports_are_read_as_they_were_written(tmp_path: Path) -> None:
    made = reports()
    for name, rows in zip(
        ("draft_head", "serve", "startup"),
        (made.head, made.serving, made.starting),
        strict=True,
    ):
        output.write(tmp_path, name, output.report(made.machine, rows))

    read = Reports.read(tmp_path)

    assert publish.page(read) == publish.page(made)


def test_reports_of_two_machines_are_no_report(tmp_path: Path) -> None:
    for name in ("draft_head", "serve", "startup"):
        output.write(tmp_path, name, output.report({"device": name}, []))

    with pytest.raises(ValueError, match="same machine"):
        Reports.read(tmp_path)


def test_goals_that_are_reached_say_so() -> None:
    assert all(goal.met for goal in goals.goals(reports()))


@pytest.mark.parametrize(
    ("change", "missed"),
    [
        ({"kind": head.TOKEN, "speedup": exactly(3.9)}, "greedy tail"),
        ({"kind": head.WIDE, "of_base": exactly(1.26)}, "widening"),
        ({"kind": head.TOKEN, "peak_bytes": 10**6}, "peak extra bytes"),
        ({"kind": head.WIDE, "seconds": exactly(0.002)}, "full vocabulary"),
    ],
)
def test_goals_that_are_missed_say_so(change: dict[str, object], missed: str) -> None:
    made = reports()
    rows = tuple(
        replace(row, **change)  # type: ignore[arg-type]
        if row.step == NATIVE and row.kind == change["kind"]
        else row
        for row in made.head
    )

    found = goals.goals(replace(made, head=rows))

    assert {goal.what.startswith(missed) for goal in found if not goal.met} == {True}
    assert all(not goal.met for goal in found if goal.what.startswith(missed))


def test_serving_that_is_slower_misses_its_goal() -> None:
    made = reports()
    slower = (replace(made.serving[1], ratio=exactly(0.98)), *made.serving[2:])

    found = goals.goals(replace(made, serving=slower))

    assert [goal.what for goal in found if not goal.met] == [
        "serving, full vocabulary: throughput over stock's"
    ]


def test_a_readme_without_marks_is_refused() -> None:
    with pytest.raises(ValueError, match="no marks"):
        publish.with_summary("# vllm-eagle3\n", "")


def test_the_probe_prints_its_stages(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from benchmarks.starting import probe

    monkeypatch.setattr(sys, "argv", ["probe"])
    probe.main()

    line = capsys.readouterr().out.strip().splitlines()[-1]
    assert set(json.loads(line.removeprefix(probe.MARK))) == {
        "import",
        "entrypoint",
        "plugins",
        "total",
    }


def test_rows_survive_json() -> None:
    row = reports().head[0]

    assert head.Row.read(json.loads(json.dumps(asdict(row)))) == row

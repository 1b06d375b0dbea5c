# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""Whole engines: output unchanged by speculation, every count as computed by hand.

The expected counts come from ``simulation.py``, which knows nothing of vLLM.
"""

from dataclasses import replace
from pathlib import Path

import pytest
import vllm

from .cases import GROUPS, PLAIN, Run
from .checkpoints import DRAFT_CASES
from .engines import DRAFT_MODULES, describe_process
from .simulation import simulate

pytestmark = pytest.mark.engine

DRAFT_FILES = {
    "llama": "llama_eagle3.py",
    "qwen3": "qwen3_eagle3.py",
    "deepseek": "deepseek_eagle3.py",
}
CONTROLS = ("broken", "no-hidden-state", "no-embedding")
RUNS = [(group, run) for group in GROUPS for run in GROUPS[group].runs]
SERVED = [(group, run) for group, run in RUNS if run.draft not in CONTROLS]
SPECULATING = [(group, run) for group, run in SERVED if run.draft != PLAIN]


def _named(runs: list[tuple[str, Run]]) -> list:
    return [pytest.param(group, run, id=f"{group}-{run.name}") for group, run in runs]


def _report(engine_runs, group: str, name: str) -> dict:
    report = engine_runs.of(group)[name]
    assert report["error"] == ""
    return report


@pytest.mark.parametrize("group, run", _named(SERVED))
def test_output_is_the_language(engine_runs, group: str, run: Run):
    """With and without speculation, so both are equal too."""
    outputs = _report(engine_runs, group, run.name)["outputs"]
    requests = GROUPS[group].requests
    assert outputs == [request.expected_output for request in requests]


@pytest.mark.parametrize("group, run", _named(SPECULATING))
def test_counts_are_exact(engine_runs, group: str, run: Run):
    counts = _report(engine_runs, group, run.name)["counts"]
    expected = simulate(DRAFT_CASES[run.draft].vocabulary, GROUPS[group].requests)
    assert counts == {
        "num_drafts": expected.num_drafts,
        "num_draft_tokens": expected.num_draft_tokens,
        "num_accepted_tokens": expected.num_accepted_tokens,
        "num_accepted_tokens_per_pos": list(expected.num_accepted_tokens_per_pos),
    }


@pytest.mark.parametrize(
    "group, name",
    [
        ("v1", "llama/permuted"),
        ("v2", "llama/permuted"),
        ("tensor-parallel", "llama/permuted"),
    ],
)
def test_remapped_full_vocabulary_counts_as_unmapped(
    engine_runs, group: str, name: str
):
    """One draft, once with its rows in order and once shuffled under a ``d2t``."""
    unmapped = _report(engine_runs, group, "llama/full")
    remapped = _report(engine_runs, group, name)
    assert remapped["counts"] == unmapped["counts"]
    assert remapped["outputs"] == unmapped["outputs"]


@pytest.mark.parametrize("group, run", _named(SPECULATING))
def test_greedy_drafting_takes_the_local_argmax_by_default(
    engine_runs, group: str, run: Run
):
    """On both runners, in every worker, and unless the user says otherwise."""
    _, *workers = _report(engine_runs, group, run.name)["processes"]
    assert [worker["local_argmax"] for worker in workers] == (
        [not run.whole_logits] * GROUPS[group].tensor_parallel
    )


@pytest.mark.parametrize(
    "group, run",
    _named([(group, run) for group, run in SPECULATING if run.whole_logits]),
)
def test_whole_logits_draft_the_same(engine_runs, group: str, run: Run):
    """Against the default, which builds no logits over the target's ids."""
    by_default = _report(engine_runs, group, replace(run, whole_logits=False).name)
    whole = _report(engine_runs, group, run.name)
    assert whole["outputs"] == by_default["outputs"]
    assert whole["counts"] == by_default["counts"]


@pytest.mark.parametrize("group, run", _named(SPECULATING))
def test_the_operators_are_native_unless_switched_off(
    engine_runs, group: str, run: Run
):
    """So the outputs and counts above are proven with them and without."""
    _, *workers = _report(engine_runs, group, run.name)["processes"]
    both = ["draft_argmax_to_target", "widen_draft_logits"]
    expected = both if GROUPS[group].native else []
    assert [worker["native"] for worker in workers] == (
        [expected] * GROUPS[group].tensor_parallel
    )


@pytest.mark.parametrize("draft", ["no-hidden-state", "no-embedding"])
def test_a_draft_that_ignores_an_input_is_told_apart(engine_runs, draft: str):
    """Shows that the counts above depend on both: this draft is hardly accepted."""
    deaf = _report(engine_runs, "v1", f"llama/{draft}")
    whole = _report(engine_runs, "v1", "llama/full")
    assert deaf["outputs"] == whole["outputs"]
    accepted = whole["counts"]["num_accepted_tokens"]
    assert deaf["counts"]["num_accepted_tokens"] < 0.1 * accepted


def test_a_broken_map_stops_the_engine_at_start(engine_runs):
    """At start, not at the first request that meets the entry."""
    report = engine_runs.of("v1")["llama/broken"]
    assert not report["started"]
    assert report["error"].startswith("ValueError: ")
    assert "d2t[40]" in report["error"]


@pytest.mark.parametrize("group, run", _named(SPECULATING))
def test_the_draft_comes_from_the_fork(engine_runs, group: str, run: Run):
    """In the process of the ``LLM`` object and in each worker."""
    stock = Path(vllm.__file__).resolve().parent
    own, *workers = _report(engine_runs, group, run.name)["processes"]
    assert len(workers) == GROUPS[group].tensor_parallel
    for process in (own, *workers):
        assert set(process["modules"]) == set(DRAFT_MODULES)
        for path in process["modules"].values():
            assert stock not in Path(path).resolve().parents
    for worker in workers:
        assert Path(worker["draft_file"]).name == DRAFT_FILES[run.family]
        assert worker["draft_file"] in worker["modules"].values()


def test_processes_are_what_the_groups_say(engine_runs):
    """Processes, compilation and runner: what a group claims, it also ran."""
    separate = _report(engine_runs, "processes", "llama/reduced")["processes"]
    parallel = _report(engine_runs, "tensor-parallel", "llama/reduced")["processes"]
    alone = _report(engine_runs, "v1", "llama/reduced")["processes"]
    pids = [{p["pid"] for p in processes} for processes in (separate, parallel, alone)]
    assert [len(distinct) for distinct in pids] == [2, 3, 1]
    assert all(worker["compiled"] is False for worker in alone[1:])
    compiled = _report(engine_runs, "compiled", "llama/reduced")["processes"]
    assert compiled[1]["compiled"] is True
    second_runner = _report(engine_runs, "v2", "llama/reduced")["processes"]
    assert second_runner[1]["runner"] == "vllm.v1.worker.cpu.model_runner"
    assert alone[1]["runner"] == "vllm.v1.worker.cpu_model_runner"


def test_this_process_uses_the_fork_too():
    """The process that runs pytest loads the overlay as an API server does."""
    paths = describe_process()["modules"].values()
    assert {Path(path).name for path in paths} == set(DRAFT_FILES.values())

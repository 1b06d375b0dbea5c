# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""Questions, rows and reports of the experiment, without an engine."""

import json
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from safetensors.torch import save_file

from benchmarks.experiment import launch, plot, prompts, remap, report, rows, table
from benchmarks.experiment.results import digest_of, from_json
from benchmarks.experiment.worker import group_from, job_for

from .made_up import ANSWERS, made_up, made_up_results

KINDS = 8


def test_there_are_ten_questions_of_each_of_eight_kinds() -> None:
    questions = prompts.load_prompts(80)

    assert list(Counter(question.kind for question in questions).values()) == [10] * 8
    assert len({question.prompt for question in questions}) == 80


def test_the_first_eight_questions_are_of_eight_kinds() -> None:
    assert len({question.kind for question in prompts.load_prompts(8)}) == KINDS


@pytest.mark.parametrize("count", [0, 81])
def test_other_numbers_of_questions_are_refused(count: int) -> None:
    with pytest.raises(ValueError, match=f"{count} prompts"):
        prompts.load_prompts(count)


def test_every_row_runs_on_both_runners_in_the_fork_and_in_stock() -> None:
    names = {row.name for group in rows.long_form() for row in group.rows}

    for implementation in ("fork", "stock"):
        for runner in ("v1", "v2"):
            for draft in rows.VOCABULARIES:
                assert f"{implementation}/{runner}/{draft}" in names
            assert f"{implementation}/{runner}/full-remapped" in names
    assert {"fork/v1/none", "fork/v2/none"} <= names


def test_only_stock_refuses_and_only_a_d2t_in_full_vocabulary() -> None:
    all_rows = [row for group in rows.long_form() for row in group.rows]

    refused = {row.name for row in all_rows if row.refusal}

    assert refused == {"stock/v1/full-d2t", "stock/v2/full-d2t"}


def test_each_length_has_answers_without_speculation() -> None:
    for form in (rows.long_form(), rows.short_form()):
        lengths = {group.form.max_tokens for group in form}
        plain = {g.form.max_tokens for g in form for r in g.rows if r.draft == "none"}
        assert plain == lengths


def test_a_group_survives_its_trip_to_the_worker() -> None:
    group = rows.long_form()[2]
    job = json.loads(job_for(group, Path("models"), [[1]]))

    assert group_from(job["group"]) == group


def test_stock_runs_without_the_fork_whatever_the_shell_says(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("VLLM_EAGLE3_DISABLE", "1")
    monkeypatch.setenv("VLLM_PLUGINS", "other")
    by_name = {group.name: group for group in rows.short_form()}
    fork, stock = (
        launch.environment(by_name[f"{name}-v1-{rows.SHORT.max_tokens}"])
        for name in ("fork", "stock")
    )

    assert fork["VLLM_EAGLE3_DISABLE"] == "0"
    assert stock["VLLM_EAGLE3_DISABLE"] == "1"
    assert "VLLM_PLUGINS" not in fork


def test_a_process_without_results_is_reported_with_its_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(launch.sys, "executable", "/bin/false")
    group = rows.short_form()[0]

    with pytest.raises(launch.GroupFailed, match=r"ended with 1 after 0 of 6 rows"):
        launch.Experiment([[1]] * 8, tmp_path).run([group])


def test_a_process_that_hangs_is_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    endless = tmp_path / "endless"
    endless.write_text("#!/bin/sh\nexec sleep 600\n")
    endless.chmod(0o755)
    monkeypatch.setattr(launch.sys, "executable", str(endless))
    group = rows.short_form()[0]

    with pytest.raises(launch.GroupFailed, match="ended with -9"):
        launch.Experiment([[1]] * 8, tmp_path, limit_s=0.2).run([group])


def test_what_workers_print_for_us_is_passed_on() -> None:
    answers: list[int] = []
    lines: list[str] = []
    listener = launch.Listener(answers.append, lines.append)

    for line in ("acceptance-answers: 3", "acceptance-row: a: done", "INFO else"):
        launch.tell(listener, line)

    assert (answers, lines) == ([3], ["a: done"])


class Draft(torch.nn.Module):
    """As much of a full-vocabulary draft as the forced remap touches."""

    def __init__(self, offsets: torch.Tensor | None) -> None:
        super().__init__()
        self.config = SimpleNamespace(draft_vocab_size=6)
        self.draft_id_to_target_id = offsets

    def compute_logits(self, hidden_states: torch.Tensor) -> torch.Tensor:
        return hidden_states * 2


def worker_with(draft: Draft) -> Any:
    return SimpleNamespace(
        model_runner=SimpleNamespace(drafter=SimpleNamespace(model=draft))
    )


def test_the_forced_remap_scatters_by_offsets_and_is_counted() -> None:
    draft = Draft(None)
    worker = worker_with(draft)
    hidden = torch.randn(3, 6)
    remap.force(worker)

    assert torch.equal(draft.compute_logits(hidden), hidden * 2)
    offsets = draft.get_buffer("forced_offsets")
    offsets.copy_(torch.tensor([5, 3, 1, -1, -3, -5]))
    assert torch.equal(draft.compute_logits(hidden), (hidden * 2).flip(1))
    assert remap.forced_remaps(worker) == 2


def test_a_draft_that_remaps_by_itself_cannot_be_forced() -> None:
    with pytest.raises(ValueError, match="draft_id_to_target_id is set"):
        remap.force(worker_with(Draft(torch.zeros(6, dtype=torch.int64))))


def test_digests_tell_where_one_answer_ends_and_the_next_begins() -> None:
    assert digest_of([[1, 2], [3]]) != digest_of([[1], [2, 3]])
    assert digest_of([[1], [2]]) != digest_of([[12]])
    assert digest_of([[1, 2], [3]]) == digest_of(([1, 2], (3,)))


def test_a_report_brings_back_the_rows_without_their_answers(tmp_path: Path) -> None:
    for name in ("target", *(f"draft-{draft}" for draft in rows.VOCABULARIES)):
        (tmp_path / name).mkdir()
        weight = {name: torch.zeros(1, dtype=torch.bfloat16)}
        save_file(weight, tmp_path / name / "model.safetensors")
    results = made_up_results()
    content = report.report(results, tmp_path, ["a fault"])
    file = tmp_path / "acceptance.json"
    file.write_text(json.dumps(content))

    found = report.read_report(file)

    assert [each.counts for each in found] == [each.counts for each in results]
    assert [each.row for each in found] == [each.row for each in results]
    assert content["faults"] == ["a fault"]
    assert content["versions"]["vllm-eagle3"]
    assert len(set(content["models"].values())) == 5
    full = content["rows"][1]
    assert full["mean_acceptance_length"] == 2.0
    assert full["output_digest"] == digest_of(ANSWERS)
    assert full["output_tokens"] == 9
    assert "outputs" not in full and from_json(full).outputs == []
    assert table.tables(found) == table.tables(results)


def test_the_table_shows_every_row_and_says_what_did_not_load() -> None:
    lines = table.tables(made_up_results()).splitlines()
    shown = [line for line in lines if line.startswith("| ")]

    assert len(shown) == len(made_up_results()) + 2 * 2
    (refused,) = (
        line for line in shown if "stock" in line and "V1" in line and "d2t" in line
    )
    assert "does not load" in refused
    (full,) = (
        line for line in shown if "this fork | V2" in line and "| full   " in line
    )
    assert [cell.strip() for cell in full.split("|")[4:9]] == [
        "10",
        "30",
        "10",
        "6 / 3 / 1",
        "2.00",
    ]


def test_the_plot_shows_four_vocabularies_and_does_not_change(tmp_path: Path) -> None:
    results = made_up_results()
    plot.draw(results, tmp_path / "one.svg")
    plot.draw(results, tmp_path / "two.svg")
    picture = (tmp_path / "one.svg").read_text()

    assert picture == (tmp_path / "two.svg").read_text()
    for name in rows.VOCABULARIES:
        assert f">{name}: " in picture
    # 6 and 5 of 10 drafts had their first token accepted.
    assert picture.count(">60.0<") == 3 and picture.count(">50.0<") == 1


def test_a_plot_with_a_vocabulary_missing_is_refused(tmp_path: Path) -> None:
    row = rows.every_row("fork", "v1")[1]
    with pytest.raises(ValueError, match="default, full-d2t, reduced"):
        plot.draw([made_up(row, rows.LONG)], tmp_path / "plot.svg")

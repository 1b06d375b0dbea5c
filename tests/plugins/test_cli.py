# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""The command line: what it prints, and what it exits with."""

import contextlib
import io
import subprocess
import sys
from importlib import metadata

import pytest

from tests.plugins.clean_process import stock_folder
from tests.support.commands import COMMAND, without_a_reader
from vllm_eagle3 import cli, status, subtree, versions


def run_status() -> tuple[int, str]:
    output = io.StringIO()
    with contextlib.redirect_stdout(output):
        code = cli.main(["status"])
    return code, output.getvalue()


def line(output: str, label: str) -> str:
    """Returns what stands behind ``label`` in the output of status."""
    (found,) = [row for row in output.splitlines() if row.startswith(f"{label} ")]
    return found.removeprefix(label).strip()


def expected_combination() -> str:
    """What the table of versions says of the vLLM that these tests run with."""
    here = versions.base(versions.vllm_version() or "")
    (extent,) = [known.extent for known in versions.SUPPORTED if known.vllm == here]
    return "tested" if extent == "everything" else f"tested in part ({extent})"


def test_the_installed_command_reports_an_active_overlay():
    done = subprocess.run([COMMAND, "status"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert line(done.stdout, "vllm-eagle3") == metadata.version("vllm-eagle3")
    assert line(done.stdout, "vLLM") == versions.vllm_version()
    assert line(done.stdout, "torch") == metadata.version("torch")
    assert line(done.stdout, "combination") == expected_combination()
    assert line(done.stdout, "overlay") == "active"
    for name in subtree.REPLACED:
        assert str(subtree.models_folder() / f"{name}.py") in done.stdout


def test_a_reader_that_has_seen_enough_is_no_error():
    assert without_a_reader("drift", "--json") == (141, "")


def test_a_closed_output_is_no_error():
    command = ["sh", "-c", 'exec "$0" drift --json >&-', COMMAND]
    done = subprocess.run(command, stderr=subprocess.PIPE, text=True)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    "environment, reason",
    [
        ({"VLLM_EAGLE3_DISABLE": "1"}, "switched off by VLLM_EAGLE3_DISABLE"),
        ({"VLLM_PLUGINS": ""}, "vLLM did not load the plugin"),
    ],
)
def test_an_inactive_overlay_is_reported_with_its_reason(
    clean_vllm, environment, reason
):
    code, output = clean_vllm(run_status, env=environment)
    assert code == 1
    assert line(output, "overlay") == "inactive"
    assert reason in line(output, "reason")
    assert f"{stock_folder()}/llama_eagle3.py" in output
    assert str(subtree.models_folder()) not in output


def test_a_missing_vllm_is_reported(monkeypatch, capsys):
    """And a missing torch with it."""
    monkeypatch.setattr(status.importlib.util, "find_spec", lambda name: None)
    monkeypatch.setattr(status.versions, "installed", lambda name: None)
    assert cli.main(["status"]) == 1
    output = capsys.readouterr().out
    assert line(output, "vLLM") == line(output, "torch") == "not installed"
    assert line(output, "reason") == "vLLM is not installed in this environment"


def run_status_of_a_broken_vllm() -> tuple[int, str]:
    class Broken:
        def find_spec(self, name: str, *_: object) -> None:
            if name == "vllm.model_executor.models":
                raise RuntimeError("operator torchvision::nms does not exist")

    sys.meta_path.insert(0, Broken())
    return run_status()


def test_a_vllm_that_cannot_be_imported_is_reported(clean_vllm):
    code, output = clean_vllm(run_status_of_a_broken_vllm)
    assert code == 1
    assert "operator torchvision::nms does not exist" in line(output, "reason")


def test_the_repositorys_own_folder_does_not_pass_for_vllm(
    tmp_path, monkeypatch, capsys
):
    (tmp_path / "vllm").mkdir()
    find = status.importlib.machinery.PathFinder.find_spec
    monkeypatch.setattr(
        status.importlib.util, "find_spec", lambda name: find(name, [str(tmp_path)])
    )
    assert cli.main(["status"]) == 1
    assert line(capsys.readouterr().out, "vLLM") == "not installed"


def test_an_untested_combination_is_called_so(monkeypatch, capsys):
    monkeypatch.setattr(status.versions, "installed", lambda name: "2.12.0")
    assert cli.main(["status"]) == 0
    combination = line(capsys.readouterr().out, "combination")
    assert combination.startswith("not tested (tested: vLLM 0.31.0 with torch 2.13.0")
    assert "vLLM 0.32.0 with torch 2.13.0, everything" in combination


def test_a_combination_that_was_tested_in_part_is_called_so(monkeypatch, capsys):
    monkeypatch.setattr(status.versions, "vllm_version", lambda: "0.33.0")
    monkeypatch.setattr(status.versions, "installed", lambda name: "2.13.0+cpu")
    assert cli.main(["status"]) == 0
    combination = line(capsys.readouterr().out, "combination")
    assert combination == f"tested in part ({status.versions.MODELS})"


@pytest.mark.parametrize("arguments", [[], ["no-such-command"], ["status", "--no"]])
def test_a_wrong_command_line_ends_in_a_usage_message(arguments, capsys):
    with pytest.raises(SystemExit) as end:
        cli.main(arguments)
    assert end.value.code == 2
    assert "usage: vllm-eagle3" in capsys.readouterr().err


@pytest.mark.parametrize("error", [ValueError("bad draft"), OSError("bad draft")])
def test_a_users_mistake_ends_in_one_line(error, monkeypatch, capsys):
    def fail() -> status.Status:
        raise error

    monkeypatch.setattr(status, "inspect_environment", fail)
    assert cli.main(["status"]) == 2
    assert capsys.readouterr().err == "vllm-eagle3: error: bad draft\n"


def test_help_names_the_commands_and_the_off_switch(capsys):
    with pytest.raises(SystemExit) as end:
        cli.main(["--help"])
    assert end.value.code == 0
    output = capsys.readouterr().out
    assert "status" in output
    assert "VLLM_EAGLE3_DISABLE=1" in output

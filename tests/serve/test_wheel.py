# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""`vllm serve` in an environment that has the fork's wheel, and no checkout of it."""

import subprocess
from pathlib import Path

import pytest

from tests.support.example import Models
from tests.support.wheel import build, copy_sources, environment

from .server import MODEL_NAME, Server

pytestmark = pytest.mark.server

LAUNCHER = """\
#!{python}
from vllm.entrypoints.cli.main import main

if __name__ == "__main__":
    main()
"""


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The interpreter of an environment with the wheel, and with vLLM as it is here."""
    folder = tmp_path_factory.mktemp("wheel")
    copy_sources(folder / "source")
    python = environment(folder / "env", build(folder / "source", "cpu"))
    launcher = python.with_name("vllm")
    launcher.write_text(LAUNCHER.format(python=python))
    launcher.chmod(0o755)
    return python


def test_an_installed_wheel_serves(python: Path, models: Models, tmp_path: Path):
    del models  # built before the server looks for them
    found = subprocess.run(
        [python, "-c", "import vllm_eagle3; print(vllm_eagle3.__file__)"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
    )
    assert found.stdout.startswith(str(python.parents[1])), found.stderr
    with Server(tmp_path / "server.log", "--vocab", "reduced", python=python) as server:
        server.wait_until_healthy()
        answer = server.client().chat.completions.create(
            model=MODEL_NAME,
            messages=[{"role": "user", "content": "What is the capital of France?"}],
            temperature=0,
            max_tokens=16,
        )
        assert "Paris" in (answer.choices[0].message.content or "")
        assert server.counter("vllm:spec_decode_num_accepted_tokens_total") > 0
    assert "vllm-eagle3" in server.output() and "is active" in server.output()

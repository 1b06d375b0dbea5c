# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""Generated checkpoints are served right or refused; there is no third outcome.

`python benchmarks/attack.py` draws many more of them.
"""

import subprocess
import sys
from pathlib import Path

from hypothesis import HealthCheck, Phase, given, settings

from .attack.damage import damages, judge_damage
from .attack.examples import examples
from .attack.verdict import judge

REPOSITORY = Path(__file__).parents[2]


def derandomised(count):
    """The same examples on every machine; the benchmark draws others."""
    return settings(
        derandomize=True,
        database=None,
        deadline=None,
        max_examples=count,
        phases=[Phase.explicit, Phase.generate, Phase.shrink],
        suppress_health_check=list(HealthCheck),
    )


@derandomised(300)
@given(examples())
def test_a_generated_draft_is_served_right_or_refused(example):
    judge(example)


@derandomised(100)
@given(damages())
def test_a_damaged_file_is_served_right_or_refused(damage):
    judge_damage(damage)


def test_the_same_without_assertions():
    """No refusal hangs on an `assert`: the benchmark under `python -O`."""
    command = [sys.executable, "-O", "benchmarks/attack.py", "--examples", "200"]
    run = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True)
    assert run.returncode == 0, run.stdout + run.stderr[-2000:]
    assert "200/200 in" in run.stdout

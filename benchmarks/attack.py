# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""Thousands of generated draft checkpoints: served right, or refused in a sentence.

    python benchmarks/attack.py --examples 10000 --seed 0

Draws what `tests/layouts/test_attack.py` draws, but more and anew with each seed: sound
drafts of all three families, bent in up to three places, and one in ten as a damaged
file. Prints what became of them, every kind of fault with its first example, and exits
with 1 if there were any. Works under `python -O` too.
"""

import argparse
import gc
import os
import resource
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

_ENVIRONMENT = {
    "HF_HUB_OFFLINE": "1",
    "VLLM_CPU_KVCACHE_SPACE": "1",
    "VLLM_LOGGING_LEVEL": "CRITICAL",
    "VLLM_NO_USAGE_STATS": "1",
    "TRANSFORMERS_VERBOSITY": "critical",
}
_FILES_SHARE = 10
_REPORT_EVERY = 500


class Tally:
    """What became of the examples so far."""

    def __init__(self, total: int) -> None:
        self._total = total
        self._start = time.monotonic()
        self.fates: Counter[str] = Counter()
        self.sentences: set[str] = set()
        self.faults: dict[str, str] = {}

    def add(self, judge: Callable[[Any], Any], example: Any) -> None:
        from tests.layouts.attack.verdict import Fault

        try:
            verdict = judge(example)
        except Fault as fault:
            self.fates["FAULT"] += 1
            self.faults.setdefault(str(fault)[:60], f"{fault}\n    {example}")
        else:
            self.fates[verdict.fate] += 1
            self.sentences.add(_kind(verdict.sentence))
        done = self.fates.total()
        if done % _REPORT_EVERY == 0:
            self.report(done)

    def report(self, done: int) -> None:
        seconds = time.monotonic() - self._start
        fates = ", ".join(f"{count} {fate}" for fate, count in self.fates.items())
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        print(
            f"{done}/{self._total} in {seconds:.0f} s, at most {peak:.1f} GiB: {fates}",
            flush=True,
        )


def _kind(sentence: str) -> str:
    """A sentence without its numbers and names."""
    return " ".join(word for word in sentence.split() if word.isalpha())[:60]


def attack(examples: int, seed: int) -> Tally:
    """Judge that many examples."""
    import hypothesis
    from hypothesis import HealthCheck, Phase, given, settings

    from tests.layouts.attack.damage import damages, judge_damage
    from tests.layouts.attack.examples import examples as drafts
    from tests.layouts.attack.verdict import judge

    tally = Tally(examples)

    def judge_all(count: int, strategy: Any, judgement: Callable[[Any], Any]) -> None:
        @hypothesis.seed(seed)
        @settings(
            max_examples=count,
            database=None,
            deadline=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        @given(strategy)
        def run(example: Any) -> None:
            tally.add(judgement, example)

        run()

    # vLLM's loader collects garbage twice per file, among a million objects of vLLM's.
    gc.collect()
    gc.freeze()
    files = max(1, examples // _FILES_SHARE)
    judge_all(files, damages(), judge_damage)
    judge_all(examples - files, drafts(), judge)
    return tally


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--examples", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    for name, value in _ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    from vllm.plugins import load_general_plugins

    load_general_plugins()
    tally = attack(arguments.examples, arguments.seed)
    tally.report(tally.fates.total())
    print(f"{len(tally.sentences)} kinds of refusal")
    for fault in tally.faults.values():
        print(f"FAULT: {fault}")
    return 1 if tally.faults else 0


if __name__ == "__main__":
    sys.exit(main())

# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""What ``tools/gpu_check.py`` does in processes of their own: graphs, and times."""

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

import torch

from benchmarks import machine, output
from benchmarks.draft_head import prepare
from benchmarks.head.cases import DTYPES, FULL, REDUCED, Draft
from benchmarks.head.measuring import Plan, measure
from benchmarks.head.timing import Patience

Both = Callable[[torch.Tensor], tuple[torch.Tensor, torch.Tensor]]
TOKENS, DRAFT, TARGET = 16, 32000, 128256


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("graphs", "times"))
    parser.add_argument("device", choices=("cuda", "cpu"))
    parser.add_argument("report", type=Path, nargs="?")
    parser.add_argument("--short", action="store_true")
    options = parser.parse_args()

    from vllm_eagle3 import native

    prepare()
    if options.device not in native.load().devices:
        sys.exit(f"the operators are {native.load()}, and not for {options.device}")
    if options.what == "times":
        times(options.device, options.report, short=options.short)
    else:
        graphs(options.device)


@torch.inference_mode()
def graphs(device: str) -> None:
    """Both operators without waiting, captured, and replayed on other logits."""
    from vllm.model_executor.models import draft_vocabulary_ops as operators

    ids = torch.randperm(TARGET)[:DRAFT].sort().values.to(device)
    inverse = operators.inverse_ids(ids, TARGET)
    for dtype in DTYPES.values():
        logits = torch.randn(TOKENS, DRAFT).to(device, dtype)

        def both(rows: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            return (
                operators.draft_argmax_to_target(rows, ids),
                operators.widen_draft_logits(rows, ids, inverse),
            )

        run = captured(both, logits) if device == "cuda" else both
        logits.copy_(torch.randn(TOKENS, DRAFT))
        top, wide = run(logits)
        expected = logits.new_full((TOKENS, TARGET), -torch.inf)
        expected[:, ids] = logits
        assert torch.equal(top, ids[logits.argmax(-1)])
        assert torch.equal(wide, expected)
    print("graphs: both operators replay as they compute")


def captured(both: Both, logits: torch.Tensor) -> Both:
    """The two as a CUDA graph, after a run in which waiting is an error."""
    torch.cuda.set_sync_debug_mode("error")
    both(logits)
    torch.cuda.set_sync_debug_mode("default")
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        results = both(logits)

    def replay(rows: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        assert rows is logits
        graph.replay()
        return results

    return replay


def times(device: str, report: Path, *, short: bool) -> None:
    sizes, batches = ((REDUCED,), (64,)) if short else ((REDUCED, FULL), (64, 256))
    seconds = 0.5 if short else 2.0
    plan = Plan(device=device, tails=Patience(seconds=seconds), heads=False)
    rows = []
    for size in sizes:
        for dtype in DTYPES:
            for row in measure(Draft(size, dtype, batches), plan):
                print(row, flush=True)
                rows.append(row)
    content = output.report(machine.describe(device), rows)
    output.write(report.parent, report.stem, content)


if __name__ == "__main__":
    main()

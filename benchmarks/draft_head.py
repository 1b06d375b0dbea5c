# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""Times what follows a draft's last layer: to a draft token, and to `[B, T]` logits.

For vocabularies of real drafts, side by side in one process and in turn: stock vLLM as
installed, stock with `use_local_argmax_reduction`, this fork in PyTorch, and this fork
with its native operators. Each twice: from hidden states, and from the draft's logits
(what is left when the head's matrix product is taken away). The floor is what reading
the draft's logits once and writing the result once would take at the bandwidth of a
plain copy.

    python -m benchmarks.draft_head
    python -m benchmarks.draft_head --short --device cuda --output build/draft_head
"""

import argparse
import json
import os
from collections.abc import Callable, Iterator
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import torch

from .head import report, timing
from .head.cases import Case, cases
from .head.variants import Step, matmul_with, variants


def main() -> None:
    options = parse()
    prepare()
    rows = []
    for case in cases(short=options.short):
        for row in measure(case, options.device, heads=not options.tails):
            rows.append(row)
            print(
                f"{row['sizes']} {row['dtype']} B={row['batch']} {row['kind']}, "
                f"{row['step']}: {1000 * row['median']:.3f} ms, "
                f"{row['ratio']:.2f} times stock",
                flush=True,
            )
    result = {"machine": report.machine(options.device), "rows": rows}
    options.output.mkdir(parents=True, exist_ok=True)
    (options.output / "draft_head.json").write_text(json.dumps(result, indent=1))
    (options.output / "draft_head.md").write_text(report.markdown(result))
    report.draw(result, options.output / "draft_head.svg")
    print(f"Written to {options.output}.")


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--output", type=Path, default=Path("build/draft_head"))
    parser.add_argument("--short", action="store_true", help="two drafts, B = 64 only")
    parser.add_argument(
        "--tails", action="store_true", help="from logits only, without matrix products"
    )
    return parser.parse_args()


def prepare() -> None:
    """Loads the fork as vLLM does, with all cores for torch."""
    # vLLM's CPU backend takes threads away unless it is told how many to use.
    os.environ.setdefault("OMP_NUM_THREADS", str(os.cpu_count()))
    from vllm.plugins import load_general_plugins

    load_general_plugins()
    torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))


@torch.inference_mode()
def measure(case: Case, device: str, *, heads: bool) -> Iterator[dict[str, Any]]:
    """One row for each way and each kind of step."""
    sizes, dtype = case.sizes, case.torch_dtype
    logits = torch.randn(case.batch, sizes.draft, device=device).to(dtype)
    token_floor, wide_floor = floors(case, device)
    starts: dict[str, tuple[torch.Tensor, Callable[[torch.Tensor], torch.Tensor]]] = {
        "logits": (logits, lambda rows: rows)
    }
    if heads:
        weight = torch.randn(sizes.draft, sizes.hidden, device=device, dtype=dtype)
        states = torch.randn(case.batch, sizes.hidden, device=device, dtype=dtype)
        starts["states"] = (states, matmul_with(weight))
    for start, (given, head) in starts.items():
        ways = variants(case, head, device)
        for goal, steps, floor in (
            ("token", ways.greedy, token_floor),
            ("wide", ways.wide, wide_floor),
        ):
            kind = f"{goal} from {start}"
            yield from timed(case, kind, steps, given, floor, device)


def timed(
    case: Case,
    kind: str,
    steps: dict[str, Step],
    given: torch.Tensor,
    floor: float,
    device: str,
) -> Iterator[dict[str, Any]]:
    calls = {name: partial(step, given) for name, step in steps.items()}
    times = timing.interleaved(calls, device)
    for name, call in calls.items():
        yield {
            "sizes": str(case.sizes),
            "dtype": case.dtype,
            "batch": case.batch,
            "kind": kind,
            "step": name,
            "floor": floor,
            "peak_bytes": timing.peak_bytes(call, device),
            **asdict(times[name]),
        }


def floors(case: Case, device: str) -> tuple[float, float]:
    """Seconds for a token and for wide logits, if memory were all there is."""
    wide = torch.zeros(
        case.batch, case.sizes.target, dtype=case.torch_dtype, device=device
    )
    copy = {"copy": wide.clone}
    seconds = timing.interleaved(copy, device, seconds=0.3)["copy"].median
    bandwidth = 2 * case.wide_bytes / seconds
    written = case.wide_bytes if case.sizes.reduced else 0
    return case.logit_bytes / bandwidth, (case.logit_bytes + written) / bandwidth


if __name__ == "__main__":
    main()

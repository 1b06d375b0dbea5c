# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""Times what follows a draft's last layer: to a draft token, and to `[B, T]` logits.

For vocabularies of real drafts, side by side in one process and in turn: stock vLLM as
installed, stock with `use_local_argmax_reduction`, this fork in PyTorch, and this fork
with its native operators. Each from the draft's logits, and where one matrix product of
the head takes less than a tenth of a second, from hidden states too. The floor is what
reading the draft's logits once and writing the result once would take at the bandwidth
of a plain copy. `make bench` runs this among others.

    python -m benchmarks.draft_head
    python -m benchmarks.draft_head --short --device cuda
"""

import argparse
import os
from collections.abc import Iterator
from typing import Any

from tqdm import tqdm

from . import machine, output
from .head.cases import drafts
from .head.results import Row


def main() -> None:
    options = parse()
    prepare()
    rows = list(all_rows(options))
    report = output.report(machine.describe(options.device), rows)
    print(f"Written to {output.write(options.output, 'draft_head', report)}.")


def parse() -> argparse.Namespace:
    parser = output.parser(
        __doc__, folder="the report", short="two drafts, B = 64 only"
    )
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument(
        "--tails", action="store_true", help="from logits only, without matrix products"
    )
    return parser.parse_args()


def prepare() -> None:
    """Loads the fork as vLLM does, with all cores for torch."""
    cores = len(os.sched_getaffinity(0))
    # vLLM's CPU backend takes threads away unless it is told how many to use.
    os.environ.setdefault("OMP_NUM_THREADS", str(cores))
    import torch
    from vllm.plugins import load_general_plugins

    load_general_plugins()
    torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))
    torch.manual_seed(0)


def all_rows(options: argparse.Namespace) -> Iterator[Row]:
    """All rows, under a progress bar that counts cases."""
    from .head.measuring import Plan, measure

    plan = Plan(device=options.device, heads=not options.tails)
    chosen = drafts(short=options.short)
    total = sum(len(draft.batches) for draft in chosen)
    with tqdm(total=total, desc="draft head", unit="case") as bar:
        done: Any = None
        for draft in chosen:
            for row in measure(draft, plan):
                bar.write(str(row))
                if done is not None and (row.sizes, row.dtype, row.batch) != done:
                    bar.update()
                done = (row.sizes, row.dtype, row.batch)
                yield row
        bar.update()


if __name__ == "__main__":
    main()

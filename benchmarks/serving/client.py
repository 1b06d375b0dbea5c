# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""Sends what `vllm bench serve` sends, by its own code, and reads what it finds.

The command itself would spend more time on importing than on asking, and its data sets
need packages that vLLM does not install.
"""

import asyncio
import contextlib
import io
from collections.abc import Sequence
from itertools import chain
from statistics import mean

from .plan import Load
from .results import Measured
from .server import Server

MODEL = "smollm2"


def ask(server: Server, load: Load, prompts: Sequence[list[int]]) -> Measured:
    """Sends one load and waits for all answers, at temperature 0.

    Args:
        prompts: token ids of at least as many questions as the load has requests.

    Raises:
        RuntimeError: an answer is not as long as it was asked to be.
    """
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        found = asyncio.run(_benchmark(server, load, prompts))
    if found["total_output_tokens"] != load.requests * load.tokens:
        raise RuntimeError(
            f"{server.name} gave {found['total_output_tokens']} tokens to "
            f"{load.requests} requests for {load.tokens}; {found['errors']}\n"
            f"{said.getvalue()}"
        )
    return Measured(
        throughput=found["output_throughput"],
        latency_s=mean(chain.from_iterable(found["itls"])),
        drafts=found["spec_decode_num_drafts"],
        accepted=found["spec_decode_accepted_tokens"],
    )


async def _benchmark(server: Server, load: Load, prompts: Sequence[list[int]]) -> dict:
    from vllm.benchmarks.datasets import SampleRequest
    from vllm.benchmarks.serve import TaskType, benchmark

    requests = [
        SampleRequest(
            prompt=prompt, prompt_len=len(prompt), expected_output_len=load.tokens
        )
        for prompt in prompts[: load.requests]
    ]
    found: dict = await benchmark(
        task_type=TaskType.GENERATION,
        endpoint_type="openai",
        api_url=f"{server.url}/v1/completions",
        base_url=server.url,
        model_id=MODEL,
        model_name=MODEL,
        tokenizer=None,
        input_requests=requests,
        max_concurrency=load.concurrency,
        # Answers of equal length, whatever the model would like.
        ignore_eos=True,
        extra_body={"temperature": 0},
        request_rate=float("inf"),
        ready_check_timeout_sec=0,
        disable_tqdm=True,
        **_NOTHING_SPECIAL,
    )
    return found


_NOTHING_SPECIAL: dict = {
    "logprobs": None,
    "burstiness": 1.0,
    "num_warmups": 0,
    "profile": False,
    "selected_percentile_metrics": [],
    "selected_percentiles": [],
    "goodput_config_dict": {},
    "lora_modules": None,
    "extra_headers": None,
}

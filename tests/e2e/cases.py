# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""The engines that the end-to-end tests start, in groups of one process each.

Starting vLLM is mostly imports, so each group runs its engines one after the other
in one process, and the tests look at what they left. Imports nothing of vLLM.
"""

import os
import random
from dataclasses import dataclass

from .language import LANGUAGE, VOCAB_SIZE
from .simulation import Request

PLAIN = "plain"


@dataclass(frozen=True)
class Run:
    """One engine.

    Attributes:
        family: Model family of target and draft.
        draft: Name in ``checkpoints.DRAFT_CASES``, or ``PLAIN`` for no speculation.
        whole_logits: Draft by whole logits over the target's ids, as vLLM does by
            default, instead of through ``get_top_tokens``, as the fork has it do.
    """

    family: str
    draft: str
    whole_logits: bool = False

    @property
    def name(self) -> str:
        suffix = "+whole-logits" if self.whole_logits else ""
        return f"{self.family}/{self.draft}{suffix}"


@dataclass(frozen=True)
class Group:
    """Engines that share one process and its settings.

    Attributes:
        runs: The engines, in this order.
        request_count: How many prompts are generated from at once.
        max_tokens: Length of the shortest answer; each further one is longer by one.
        eager: False for torch.compile.
        tensor_parallel: Number of worker processes.
        engine_process: Whether the engine core gets a process of its own.
        v2_runner: Model Runner V2 under Triton's interpreter.
        native: Whether the compiled operators are loaded.
    """

    runs: tuple[Run, ...]
    request_count: int = 16
    max_tokens: int = 50
    eager: bool = True
    tensor_parallel: int = 1
    engine_process: bool = False
    v2_runner: bool = False
    native: bool = True

    @property
    def environment(self) -> dict[str, str]:
        """Variables that vLLM reads when it is imported.

        One OpenMP thread per worker is plenty for matrices this small, and makes
        the engines independent of what else the machine is doing.
        """
        binding = _one_core_each(self.tensor_parallel)
        return {
            "OMP_NUM_THREADS": "1",
            "VLLM_CPU_KVCACHE_SPACE": "1",
            "VLLM_CPU_OMP_THREADS_BIND": binding,
            "VLLM_ENABLE_V1_MULTIPROCESSING": str(int(self.engine_process)),
            # Lets a test send a function of its own to the workers.
            "VLLM_ALLOW_INSECURE_SERIALIZATION": "1",
            # Compile what is there, not what an earlier run left.
            "VLLM_DISABLE_COMPILE_CACHE": "1",
            # Workers that have nothing to save need no time to say goodbye.
            "VLLM_WORKER_SHUTDOWN_TIMEOUT_SECONDS": "1",
            "VLLM_NO_USAGE_STATS": "1",
            **({} if self.native else {"VLLM_EAGLE3_DISABLE_NATIVE": "1"}),
        }

    @property
    def requests(self) -> list[Request]:
        return make_requests(self.request_count, self.max_tokens)


def _one_core_each(workers: int) -> str:
    """vLLM's notation for a core per worker; a single worker may wander."""
    if workers == 1:
        return "nobind"
    cores = sorted(os.sched_getaffinity(0))
    return "|".join(str(cores[worker % len(cores)]) for worker in range(workers))


def make_requests(count: int, max_tokens: int) -> list[Request]:
    """Prompts of different lengths, spread evenly over the cycle of the language.

    All tokens of a prompt but the last are arbitrary, so that a draft that looks at
    a wrong position sees a wrong token. The answers have different lengths too: the
    batch shrinks one request at a time.
    """
    rng = random.Random(7)
    requests = []
    for index in range(count):
        noise = [rng.randrange(VOCAB_SIZE) for _ in range(rng.randrange(1, 21))]
        last = LANGUAGE.token_at[index * VOCAB_SIZE // count]
        requests.append(Request((*noise, last), max_tokens + index))
    return requests


def _llama(*drafts: str) -> tuple[Run, ...]:
    return tuple(Run("llama", draft) for draft in drafts)


# Both operators: the argmax in target ids, and whole logits.
_WITHOUT_OPERATORS = (*_llama("reduced"), Run("llama", "reduced", whole_logits=True))
_VOCABULARIES = ("full", "default", "reduced", "full-d2t", "permuted")

GROUPS = {
    "v1": Group(
        runs=(
            *_llama(PLAIN, *_VOCABULARIES, "no-hidden-state", "no-embedding", "broken"),
            Run("llama", "full", whole_logits=True),
            Run("llama", "reduced", whole_logits=True),
            *(
                Run(family, draft)
                for family in ("qwen3", "deepseek")
                for draft in (PLAIN, "full", "reduced")
            ),
        )
    ),
    "v2": Group(
        runs=(
            *_llama(PLAIN, *_VOCABULARIES),
            Run("llama", "reduced", whole_logits=True),
        ),
        request_count=6,
        max_tokens=24,
        v2_runner=True,
    ),
    "tensor-parallel": Group(
        runs=(
            # Each rank's winner has to be mapped after the ranks agree.
            *_llama("full", "default", "reduced", "permuted"),
            Run("llama", "reduced", whole_logits=True),
        ),
        request_count=8,
        max_tokens=30,
        tensor_parallel=2,
    ),
    "compiled": Group(runs=_llama("full", "reduced"), eager=False),
    "pytorch": Group(
        runs=_WITHOUT_OPERATORS, request_count=6, max_tokens=20, native=False
    ),
    "v2-pytorch": Group(
        runs=_WITHOUT_OPERATORS,
        request_count=4,
        max_tokens=8,
        v2_runner=True,
        native=False,
    ),
    "processes": Group(runs=_llama("reduced"), request_count=8, engine_process=True),
}

# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""One start: imports vLLM, loads its plugins, and on request starts an engine.

Prints one line of JSON: the seconds of each stage. `benchmarks/startup.py` runs it in a
process of its own, with the folders of target and draft where there shall be an engine.
"""

import json
import sys
import time
from collections.abc import Callable

MARK = "startup-probe:"


def main() -> None:
    # In vLLM's own order: it loads its plugins when it makes a config.
    stages = {
        "import": _seconds(_import),
        "entrypoint": _seconds(_import_entrypoint),
        "plugins": _seconds(_load_plugins),
    }
    if len(sys.argv) > 1:
        target, draft = sys.argv[1:]
        stages["engine"] = _seconds(lambda: _start_engine(target, draft))
    print(MARK, json.dumps(stages | {"total": sum(stages.values())}), flush=True)


def _seconds(stage: Callable[[], None]) -> float:
    start = time.perf_counter()
    stage()
    return time.perf_counter() - start


def _import() -> None:
    import vllm  # noqa: F401


def _import_entrypoint() -> None:
    # `import vllm` alone imports little; its names bring the rest when they are used.
    from vllm import LLM  # noqa: F401


def _load_plugins() -> None:
    from vllm.plugins import load_general_plugins

    load_general_plugins()


def _start_engine(target: str, draft: str) -> None:
    from vllm import LLM

    LLM(
        model=target,
        speculative_config={
            "method": "eagle3",
            "model": draft,
            "num_speculative_tokens": 3,
        },
        dtype="float32",
        max_model_len=512,
        enforce_eager=True,
        skip_tokenizer_init=True,
    )


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""Runs plain `vllm serve` with an EAGLE-3 draft, and shows the command that it runs.

Without --target and --draft it serves the example's pair, and --vocab says in which
vocabulary the draft is. Arguments after `--` go to `vllm serve` as they are and win
over what this script chooses.

    python examples/smollm2_eagle3/serve.py --port 8000 -- --max-num-seqs 32
"""

import argparse
import json
import os
import re
import shlex
import socket
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from build_draft import VOCABULARIES, draft_folder
from build_target import TARGET

EXAMPLE_NAME = "smollm2"
HUB_ID = re.compile(r"[\w.-]+(?:/[\w.-]+)?")
# vLLM's own binding of threads to cores leaves one core to the scheduler. Of this few,
# that is too many; the binding also decides the number of threads.
FEW_CORES = 4
CPU_OPTIONS = {
    # bfloat16 crawls on CPUs without AVX512-BF16 or AMX.
    "--dtype": "float32",
    "--max-model-len": "2048",
}


@dataclass(frozen=True, kw_only=True)
class Request:
    """What is to be served, and how."""

    target: str
    draft: str
    name: str | None
    port: int
    spec_tokens: int
    backend: str
    dtype: str | None
    further: tuple[str, ...]


def main() -> int:
    request = parse(sys.argv[1:])
    check_port(request.port)
    added = cpu_environment() if request.backend == "cpu" else {}
    vllm = Path(sys.executable).with_name("vllm")
    command = [str(vllm), *vllm_arguments(request)]
    shown = [f"{name}={value}" for name, value in added.items()]
    print(f"Serving on port {request.port}:")
    print(shlex.join(["env", *shown, *command] if shown else command), flush=True)
    os.execve(vllm, command, os.environ | added)


def parse(arguments: list[str]) -> Request:
    """Reads the command line; exits with a message if it makes no sense."""
    ours, further = _split(arguments)
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--target", help="model folder or Hub id")
    parser.add_argument("--draft", help="folder or Hub id of its EAGLE-3 draft")
    parser.add_argument(
        "--vocab", choices=VOCABULARIES, help="of the example's draft (default: full)"
    )
    parser.add_argument("--port", type=int, default=8000)
    parser.add_argument(
        "--spec-tokens", type=int, default=3, help="that a draft proposes; 0: no draft"
    )
    parser.add_argument("--backend", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--dtype", help="default: float32 on a CPU, else vLLM's choice")
    options = parser.parse_args(ours)
    if bool(options.target) != bool(options.draft):
        refuse(
            "name both, the target and its draft, or neither: make serve TARGET=... "
            "DRAFT=..."
        )
    target, draft = own_pair(options) if options.target else example_pair(options)
    return Request(
        target=target,
        draft=draft,
        name=None if options.target else EXAMPLE_NAME,
        port=options.port,
        spec_tokens=options.spec_tokens,
        backend=options.backend,
        dtype=options.dtype or None,
        further=tuple(further),
    )


def own_pair(options: argparse.Namespace) -> tuple[str, str]:
    """Returns the target and the draft that were named."""
    if options.vocab:
        refuse("VOCAB chooses among the example's drafts; leave it out with DRAFT")
    check_model("TARGET", options.target)
    check_model("DRAFT", options.draft)
    return options.target, options.draft


def example_pair(options: argparse.Namespace) -> tuple[str, str]:
    """Returns the example's target and its draft in the vocabulary asked for."""
    vocabulary = options.vocab or VOCABULARIES[0]
    draft = draft_folder(vocabulary)
    if not (TARGET.is_dir() and draft.is_dir()):
        refuse(
            f"the example's models are missing; run `make models VOCAB={vocabulary}`"
        )
    return str(TARGET), str(draft)


def refuse(reason: str) -> NoReturn:
    """Ends the program with one line."""
    print(f"serve: {reason}", file=sys.stderr)
    raise SystemExit(2)


def check_model(variable: str, model: str) -> None:
    """Catches at once what vLLM would say after half a minute and a traceback."""
    folder = Path(model).expanduser()
    if folder.is_dir():
        if not (folder / "config.json").is_file():
            refuse(f"{variable}={model} is a folder without config.json")
    elif HUB_ID.fullmatch(model):
        print(f"{variable}={model} is no folder here and so taken as a Hub id.")
    else:
        refuse(f"{variable}={model} is neither a folder nor a Hub id (owner/name)")


def check_port(port: int) -> None:
    """Refuses a port that something else listens on."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("0.0.0.0", port))
        except OSError as error:
            refuse(
                f"port {port}: {error.strerror}; choose another: make serve PORT=..."
            )


def _split(arguments: list[str]) -> tuple[list[str], list[str]]:
    if "--" not in arguments:
        return arguments, []
    at = arguments.index("--")
    return arguments[:at], arguments[at + 1 :]


def vllm_arguments(request: Request) -> list[str]:
    """Returns the arguments for the command `vllm`."""
    options = dict(CPU_OPTIONS) if request.backend == "cpu" else {}
    if request.dtype:
        options["--dtype"] = request.dtype
    if request.name:
        options["--served-model-name"] = request.name
    arguments = ["serve", request.target, "--port", str(request.port)]
    if request.spec_tokens:
        speculative = {
            "method": "eagle3",
            "model": request.draft,
            "num_speculative_tokens": request.spec_tokens,
        }
        arguments += ["--speculative-config", json.dumps(speculative)]
    for option, value in options.items():
        arguments += [option, value]
    if request.backend == "cpu":
        # Compiling takes minutes on two cores; --no-enforce-eager asks for it.
        arguments.append("--enforce-eager")
    return [*arguments, *request.further]


def cpu_environment(environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Returns the variables that vLLM's CPU backend wants and that nobody has set."""
    cores = sorted(os.sched_getaffinity(0))
    wanted = {"VLLM_CPU_KVCACHE_SPACE": "2"}  # GiB
    if len(cores) <= FEW_CORES:
        wanted["VLLM_CPU_OMP_THREADS_BIND"] = ",".join(map(str, cores))
    added = {name: value for name, value in wanted.items() if name not in environment}
    # vLLM warns that speculation is slow without Intel's OpenMP loaded first.
    openmp = Path(sys.prefix) / "lib" / "libiomp5.so"
    loaded = environment.get("LD_PRELOAD", "")
    # vLLM starts with one OpenMP runtime loaded first, and not with two.
    if openmp.is_file() and not re.search("lib[ig]omp", loaded):
        added["LD_PRELOAD"] = f"{openmp}:{loaded}".rstrip(":")
    return added


if __name__ == "__main__":
    sys.exit(main())

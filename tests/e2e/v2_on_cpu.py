# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""Lets vLLM's Model Runner V2 run on a machine without a GPU.

That runner prepares its batches with Triton kernels. Triton brings an interpreter
that executes them on tensors in ordinary memory, and vLLM uses Triton on a CPU if
Triton claims to have a backend called ``cpu``. Neither is made for speed: a step
takes a good part of a second.
"""

import os


def enable() -> None:
    """Select the runner; call it before vLLM is imported, in the same process."""
    os.environ["VLLM_USE_V2_MODEL_RUNNER"] = "1"
    os.environ["TRITON_INTERPRET"] = "1"

    from triton.backends import Backend, backends
    from triton.backends.compiler import BaseBackend
    from triton.backends.driver import DriverBase

    class InterpreterDriver(DriverBase):
        """Says that it is there, and is never asked for more."""

        @classmethod
        def is_active(cls) -> bool:
            return True

    backends["cpu"] = Backend(compiler=BaseBackend, driver=InterpreterDriver)

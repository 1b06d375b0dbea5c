# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""What the fork uses of vLLM is read from its source."""

import pytest

from vllm_eagle3.drift.usage import CALLED, EXTENDED, IMPORTED, PATCHED, Use, uses

MODELS = "vllm.model_executor.models"


@pytest.fixture
def read(tmp_path):
    """Returns a function that writes a file and reads what it uses."""

    def read(source: str) -> set[Use]:
        (tmp_path / "module.py").write_text(source)
        return uses(tmp_path / "module.py", MODELS)

    return read


@pytest.mark.parametrize(
    "source, use",
    [
        ("import vllm.config", Use("vllm.config", "", "", IMPORTED)),
        ("import vllm.config as c\nc.Held", Use("vllm.config", "", "Held", IMPORTED)),
        ("from vllm.config import A as B", Use("vllm.config", "A", "", IMPORTED)),
        ("from vllm.x import A as B\nB.b", Use("vllm.x", "A", "b", IMPORTED)),
        ("from .llama import A", Use(f"{MODELS}.llama", "A", "", IMPORTED)),
        (
            "def f():\n from vllm.x import A\n return A.b",
            Use("vllm.x", "A", "b", IMPORTED),
        ),
        ("from vllm.x import A\nA(b=1)", Use("vllm.x", "A", "", CALLED)),
        ("from vllm.x import A\nA(b=1)", Use("vllm.x", "A", "b", IMPORTED)),
        ("from vllm.x import A\nclass B(A): ...", Use("vllm.x", "A", "", EXTENDED)),
        (
            "from vllm.x import A\nclass B(A):\n def b(self): ...",
            Use("vllm.x", "A", "b", IMPORTED),
        ),
        (
            "from vllm.x import A\nclass B(A):\n def c(self): self.b",
            Use("vllm.x", "A", "b", IMPORTED),
        ),
        (
            "from vllm.x import A\nclass B(A):\n def c(self): super().b()",
            Use("vllm.x", "A", "b", IMPORTED),
        ),
        (
            "from vllm.x import A\ndef f(a: A | None): return a.b",
            Use("vllm.x", "A", "b", IMPORTED),
        ),
        (
            "from vllm.x import A\ndef f(*, a: A): return a.b",
            Use("vllm.x", "A", "b", IMPORTED),
        ),
        ("from vllm.x import A\nA.b = 1", Use("vllm.x", "A", "b", PATCHED)),
        ("from vllm.x import A\nsetattr(A, 'b', 1)", Use("vllm.x", "A", "b", PATCHED)),
        ("from vllm.x import A\nA['b'] = 1", Use("vllm.x", "A", "", PATCHED)),
    ],
)
def test_a_use_is_seen(read, source, use):
    assert use in read(source)


def test_other_packages_are_left_out(read):
    assert read("import torch, vllm_eagle3\nfrom torch import nn\nnn.Linear(1, 2)") == (
        set()
    )

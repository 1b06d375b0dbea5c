# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""Damaged files: one sound draft as bytes, cut short, flipped or overwritten."""

import functools
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import torch
from hypothesis import strategies as st
from safetensors.torch import load_file
from torch import nn

from tests.support.checkpoints import target_config
from tests.support.drafts import draft_environment, engine_config, own_rope_tables

from ..checkpoint import Checkpoint, Tensors
from ..recipe import Sizes
from ..small import small
from .verdict import Fault, Verdict, judge_load

_SIZES = Sizes(hidden=64, intermediate=96, heads=4, kv_heads=2, head_dim=32)
_FILES = {"safetensors": "model.safetensors", "bin": "pytorch_model.bin"}


@dataclass(frozen=True)
class Damage:
    """What happens to the file.

    Attributes:
        places: of the damage, as parts of a million of the stretch that is hit.
        head: whether the header is hit, or the whole file.
        bit: which bit of the byte there is flipped.
    """

    files: Literal["safetensors", "bin"]
    kind: Literal["cut", "flip", "overwrite"]
    places: tuple[int, ...]
    head: bool
    bit: int

    def apply(self, sound: bytes) -> bytes:
        damaged = bytearray(sound)
        reach = min(2048, len(sound)) if self.head else len(sound)
        for place in self.places:
            at = place * reach // 1_000_000
            if self.kind == "cut":
                return bytes(damaged[:at])
            if self.kind == "flip":
                damaged[at] ^= 1 << self.bit
            else:
                damaged[at : at + 16] = bytes([self.bit]) * len(damaged[at : at + 16])
        return bytes(damaged)


def damages() -> st.SearchStrategy[Damage]:
    """Headers are hit as often as everything."""
    return st.builds(
        Damage,
        files=st.sampled_from(["safetensors", "safetensors", "bin"]),
        kind=st.sampled_from(["cut", "flip", "flip", "overwrite"]),
        places=st.lists(st.integers(0, 999_999), min_size=1, max_size=4).map(tuple),
        head=st.booleans(),
        bit=st.integers(0, 7),
    )


@functools.cache
def _sound(files: Literal["safetensors", "bin"]) -> tuple[Checkpoint, Path, bytes, Any]:
    """A draft, its folder, its file and vLLM's config for it."""
    draft = small(
        "llama",
        {"files": files, "dtype": torch.float32},
        vocab=64,
        draft_vocab=24,
        sizes=_SIZES,
    )
    folder = draft.write(Path(tempfile.mkdtemp()) / "draft")
    config = engine_config(folder, target_config(**draft.target))
    return draft, folder, (folder / _FILES[files]).read_bytes(), config


def judge_damage(damage: Damage) -> Verdict:
    """Load the damaged file through vLLM's loader and say what became of it.

    Raises:
        Fault: neither a right model nor a refusal of the fork.
    """
    draft, folder, sound, config = _sound(damage.files)
    file = folder / _FILES[damage.files]
    file.write_bytes(damage.apply(sound))
    tensors = _readable(file)
    checkpoint = Checkpoint(draft.config, tensors or {}, target=draft.target)
    # Huge weights have no outputs that two orders of summation would agree on.
    compare = tensors is None or _is_tame(tensors)
    verdict = judge_load(lambda: _load(config), checkpoint, compare=compare)
    if tensors is None and "cannot be read" not in verdict.sentence:
        raise Fault(f"an unreadable file is {verdict.fate}: {verdict.sentence}")
    return verdict


def _readable(file: Path) -> Tensors | None:
    """The file's tensors, or `None` where the libraries themselves give up."""
    try:
        if file.suffix == ".safetensors":
            return {name: value.clone() for name, value in load_file(file).items()}
        # As vLLM does: devices that the file names do not count.
        return torch.load(file, map_location="cpu", weights_only=True)
    except Exception:
        return None


def _is_tame(tensors: Tensors) -> bool:
    values = (value for value in tensors.values() if value.is_floating_point())
    return all(bool((value.float().abs() < 100).all()) for value in values)


def _load(config: Any) -> nn.Module:
    from vllm.model_executor.model_loader import get_model

    config.compilation_config.static_forward_context.clear()
    draft = config.speculative_config.draft_model_config
    with draft_environment(config), own_rope_tables():
        return get_model(vllm_config=config, model_config=draft)

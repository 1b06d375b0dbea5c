# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""What hypothesis draws: a small draft, and ways to bend it."""

from dataclasses import dataclass
from typing import Any, Literal

import torch
from hypothesis import strategies as st

from ..recipe import Exporter, Recipe, Sizes
from ..small import ROPE

_SIZES = Sizes(hidden=64, intermediate=96, heads=4, kv_heads=2, head_dim=32)
_ARCHITECTURES = {
    "llama": ("LlamaForCausalLMEagle3", "llama"),
    "qwen3": ("Eagle3Qwen3ForCausalLM", "qwen3"),
    "deepseek": ("Eagle3DeepseekV2ForCausalLM", "deepseek_v2"),
}
_IDS = "eagle_aux_hidden_state_layer_ids"
_NUMBERS = [0, -1, 1, 2, 3, 7, 16, 33, 64, 65, 2**31, 2**62, None, 1.5, "12", [4], True]
_KEYS = [
    "draft_vocab_size",
    "num_hidden_layers",
    "num_aux_hidden_states",
    "target_hidden_size",
    _IDS,
]
_WIDTHS = [
    "hidden_size",
    "intermediate_size",
    "num_attention_heads",
    "num_key_value_heads",
]
# Never of another sound size: vLLM has kernels for few sizes of heads, and raises
# positions to what the target serves.
_HEADS_AND_POSITIONS = [
    "max_position_embeddings",
    "head_dim",
    "q_lora_rank",
    "kv_lora_rank",
    "qk_nope_head_dim",
    "qk_rope_head_dim",
    "v_head_dim",
]
_NO_SIZES = [0, -1, 2**31, 2**40, 2**62, 1.5, "12", [4], True]
_ROWS = [0, -1, 1, 8, 33, 64, 70, 200, None, 1.5, "12", ...]
_FLAGS = ["fc_norm", "norm_before_fc", "norm_output", "attention_bias", "mlp_bias"]

BendKind = Literal[
    "drop", "copy", "rename", "extra", "shape", "dtype", "offsets", "mask", "key"
]


@dataclass(frozen=True)
class Bend:
    """One change to a checkpoint.

    Attributes:
        where: chooses a tensor, by its number modulo their number.
        how: chooses among the changes of this kind, or is a key.
        value: of a config key.
    """

    kind: BendKind
    where: int = 0
    how: Any = 0
    value: Any = None


@dataclass(frozen=True)
class Example:
    """A draft by its recipe, and what is done to it."""

    recipe: Recipe
    seed: int
    bends: tuple[Bend, ...]


def examples() -> st.SearchStrategy[Example]:
    """Drafts of all families, half of them bent in up to three places."""
    bends = st.one_of(st.just(()), st.lists(_bends(), max_size=3).map(tuple))
    return st.builds(Example, _recipes(), st.integers(0, 2**16), bends)


@st.composite
def _recipes(draw: Any) -> Recipe:
    family = draw(st.sampled_from(["llama", "llama", "qwen3", "qwen3", "deepseek"]))
    architecture, model_type = _ARCHITECTURES[family]
    target = draw(st.integers(8, 70))
    aux = draw(st.sampled_from([3, 3, 3, 1, 4]))
    norms = draw(st.sampled_from([(), (), ("fc_norm",), ("input_norm",)]))
    mask = ("mask_hidden",) if draw(st.integers(0, 5)) == 5 else ()
    keys = dict(ROPE[family])
    if aux != 3:
        keys[_IDS] = list(range(aux))
    if mask:
        keys["mask_token_id"] = target - 1
    for name in norms:
        keys["norm_before_fc" if name == "input_norm" else name] = True
    for flag in ("norm_output", "norm_before_residual"):
        if draw(st.booleans()):
            keys[flag] = True
    vocab = draw(st.sampled_from([target, target, target, target + 3, target + 58]))
    return Recipe(
        name="generated",
        exporter=_exporter(draw, architecture, model_type),
        family=family,
        vocab=vocab,
        draft_vocab=draw(st.sampled_from([vocab, None, ..., target // 2, 5])),
        sizes=_SIZES,
        target_vocab=target,
        target_layers=12,
        layers=draw(st.sampled_from([1, 1, 2])),
        aux=aux,
        further=norms + mask,
        keys=keys,
    )


def _exporter(draw: Any, architecture: str, model_type: str) -> Exporter:
    shipped = st.sampled_from(["pruned", "always", "never"])
    return Exporter(
        architectures=(architecture,),
        model_type=model_type,
        layer=draw(st.sampled_from(["midlayer", "layers.0"])),
        prefix=draw(st.sampled_from(["", "", "model."])),
        embed=draw(st.booleans()),
        head=draw(st.sampled_from([True, True, False])),
        d2t=draw(shipped),
        t2d=draw(shipped),
        dtype=draw(st.sampled_from([torch.bfloat16, torch.float16, torch.float32])),
    )


def _bends() -> st.SearchStrategy[Bend]:
    where, how = st.integers(0, 40), st.integers(0, 40)
    tensors = st.builds(
        Bend,
        st.sampled_from(["drop", "copy", "rename", "extra", "shape", "dtype"]),
        where,
        how,
    )
    maps = st.builds(Bend, st.sampled_from(["offsets", "mask"]), where, how)
    key = st.builds(
        Bend,
        st.just("key"),
        how=st.sampled_from(_KEYS),
        value=st.sampled_from([..., *_NUMBERS]),
    )
    flag = st.builds(
        Bend, st.just("key"), how=st.sampled_from(_FLAGS), value=st.booleans()
    )
    rows = st.builds(
        Bend, st.just("key"), how=st.just("vocab_size"), value=st.sampled_from(_ROWS)
    )
    width = st.builds(
        Bend,
        st.just("key"),
        how=st.sampled_from(_WIDTHS),
        value=st.sampled_from([..., *_NUMBERS]),
    )
    no_size = st.builds(
        Bend,
        st.just("key"),
        how=st.sampled_from(_HEADS_AND_POSITIONS),
        value=st.sampled_from(_NO_SIZES),
    )
    return st.one_of(tensors, tensors, maps, maps, key, flag, rows, width, no_size)

# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""Small checkpoints of all kinds, sound and faulty, for property tests."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from hypothesis import strategies as st
from safetensors.torch import save_file

from tests.support.checkpoints import (
    FAMILIES,
    TARGET_VOCAB,
    DraftShape,
    draft_config,
    draft_tensors,
)

IDS = "eagle_aux_hidden_state_layer_ids"

# What is done to the config, one or none at a time.
CONFIG_CHANGES: tuple[dict[str, Any], ...] = (
    {IDS: ...},
    {IDS: [1, 3, 5, 7]},
    {IDS: [0, 9]},
    {"eagle_config": {IDS: [2, 4, 6]}},
    {"eagle_config": {"use_aux_hidden_state": False}},
    {"num_hidden_layers": 2},
    {"norm_before_fc": True},
    {"fc_norm": True},
    {"norm_output": True, "norm_before_residual": True},
    {"attention_bias": True},
    {"mlp_bias": True},
    {"tie_word_embeddings": True},
    {"draft_vocab_size": 0},
    {"draft_vocab_size": "256"},
    {"vocab_size": 1088},
    {"vocab_size": 256},
    {"hidden_size": 64},
    {"hidden_size": 2**40},
    {"intermediate_size": -1},
    {"num_attention_heads": 0},
    {"vocab_size": 2**40},
    {"max_position_embeddings": 2**40},
    {"target_hidden_size": 64},
    {"architectures": ["LlamaForCausalLM"]},
    {"architectures": ["NoSuchModel"]},
    {"architectures": ...},
    {"num_aux_hidden_states": 4},
    {"logit_scale": "large"},
)
EXTRAS: dict[str, tuple[int, ...]] = {
    "layers.1.input_layernorm.weight": (128,),
    "layers.1.hidden_norm.weight": (128,),
    "midlayer.self_attn.q_proj.bias": (128,),
    "midlayer.mlp.up_proj.bias": (256,),
    "norm.bias": (128,),
    "input_norm.weight": (384,),
    "fc.bias": (128,),
    "embed_tokens.weight": (TARGET_VOCAB, 128),
    "mask_hidden": (1, 1, 384),
    "rotary_emb.inv_freq": (16,),
    "surprise": (3,),
    "layers.0.input_layernorm.weight": (128,),
}
MAPS = ("none", "zeros", "strided", "outside", "twice", "short", "absolute")
MASKS = ("none", "right", "all", "short")
MAP_DTYPES = (torch.int64, torch.int32, torch.float32, torch.bfloat16)
FILES = ("safetensors", "shards", "bin", "truncated", "flipped")


@dataclass(frozen=True)
class Generated:
    """A checkpoint by the choices that it was made from; small to print."""

    family: str
    draft_vocab: int
    map: str
    map_dtype: torch.dtype
    map_name: str
    mask: str
    config: int | None
    extra: str | None
    dropped: int | None
    cut: int | None
    files: str

    def config_json(self) -> dict[str, Any]:
        changes = {} if self.config is None else CONFIG_CHANGES[self.config]
        base = {
            "draft_vocab_size": self.draft_vocab,
            "vocab_size": max(self.draft_vocab, TARGET_VOCAB),
            IDS: [1, 4, 6],
        }
        return draft_config(self.family, **(base | changes))

    def tensors(self) -> dict[str, torch.Tensor]:
        shape = DraftShape(family=self.family, draft_vocab=self.draft_vocab)
        tensors = draft_tensors(shape)
        tensors |= self._map()
        if self.extra is not None:
            tensors[self.extra] = torch.zeros(EXTRAS[self.extra])
        names = sorted(tensors)
        if self.cut is not None:
            name = names[self.cut % len(names)]
            tensors[name] = tensors[name][:-1].clone()
        if self.dropped is not None:
            del tensors[names[self.dropped % len(names)]]
        return tensors

    def _map(self) -> dict[str, torch.Tensor]:
        count = self.draft_vocab
        ids = torch.arange(count)
        step = max(1, TARGET_VOCAB // count)
        offsets = ids * (step - 1)
        if self.map == "zeros":
            offsets = torch.zeros_like(ids)
        elif self.map == "outside":
            offsets = offsets.clone()
            offsets[count // 2] = TARGET_VOCAB
        elif self.map == "twice":
            offsets = offsets.clone()
            offsets[1] = offsets[0] - 1
        elif self.map == "short":
            offsets = offsets[:-1]
        elif self.map == "absolute":
            offsets = ids * step
        made = {}
        if self.map != "none":
            made[self.map_name] = offsets.to(self.map_dtype)
        if self.mask != "none":
            mask = torch.zeros(TARGET_VOCAB, dtype=torch.bool)
            mask[(ids * step) % TARGET_VOCAB] = True
            if self.mask == "all":
                mask[:] = True
            elif self.mask == "short":
                mask = mask[:-8]
            made["t2d"] = mask
        return made

    def write(self, folder: Path) -> Path:
        """Config and weights in the chosen kind of files."""
        folder.mkdir(parents=True)
        (folder / "config.json").write_text(json.dumps(self.config_json()))
        tensors = self.tensors()
        if self.files == "bin":
            torch.save(tensors, folder / "pytorch_model.bin")
        elif self.files == "shards":
            _write_shards(folder, tensors)
        else:
            path = folder / "model.safetensors"
            save_file(tensors, path, {"format": "pt"})
            if self.files == "truncated":
                path.write_bytes(path.read_bytes()[:-100])
            elif self.files == "flipped":
                raw = bytearray(path.read_bytes())
                raw[40] ^= 0x41
                path.write_bytes(raw)
        return folder


def _write_shards(folder: Path, tensors: dict[str, torch.Tensor]) -> None:
    names = sorted(tensors)
    index = {}
    for number, part in enumerate((names[::2], names[1::2]), start=1):
        file = f"model-0000{number}-of-00002.safetensors"
        save_file({name: tensors[name] for name in part}, folder / file)
        index |= dict.fromkeys(part, file)
    text = json.dumps({"metadata": {}, "weight_map": index})
    (folder / "model.safetensors.index.json").write_text(text)


def _seldom(strategy: st.SearchStrategy) -> st.SearchStrategy:
    """Mostly nothing, so that faults come alone as well as in company."""
    return st.one_of(st.none(), st.none(), st.none(), strategy)


CHECKPOINTS = st.builds(
    Generated,
    family=st.sampled_from(FAMILIES),
    draft_vocab=st.sampled_from((256, TARGET_VOCAB, 1088)),
    map=st.sampled_from(("none", "zeros", "strided", "strided", *MAPS)),
    map_dtype=st.sampled_from((torch.int64, torch.int64, *MAP_DTYPES)),
    map_name=st.sampled_from(("d2t", "model.d2t", "draft_id_to_target_id")),
    mask=st.sampled_from(("none", "none", *MASKS)),
    config=_seldom(st.integers(0, len(CONFIG_CHANGES) - 1)),
    extra=_seldom(st.sampled_from(sorted(EXTRAS))),
    dropped=_seldom(st.integers(0, 30)),
    cut=_seldom(st.integers(0, 30)),
    files=st.sampled_from((*("safetensors",) * 6, *FILES)),
)

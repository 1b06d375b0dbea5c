# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""The names a draft checkpoint may use, brought to one spelling.

`midlayer.*` and `layers.0.*` are one layer; a leading `model.` means nothing; `d2t`
and `draft_id_to_target_id`, under any prefix, are one tensor. Whole names and anchored
affixes are matched, never substrings. Messages speak in the checkpoint's own spelling.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pickle import UnpicklingError

import torch
import torch.nn.functional as F

from .draft_vocabulary import CheckpointTensor

_FIRST_LAYER = "layers.0."
_FIRST_LAYER_ALIAS = "midlayer."
_PREFIX = "model."
_LAYER = re.compile(r"layers\.(\d+)\.")

# Tensors that are no weights of a module, by the field that holds them.
_APART = {
    "d2t": re.compile(r"(?:.*\.)?(?:d2t|draft_id_to_target_id)"),
    "t2d": re.compile(r"(?:.*\.)?t2d"),
    "mask_hidden": re.compile(r"(?:.*\.)?mask_hidden"),
}
_MAPS = ("d2t", "t2d")
_NORM_BIAS = re.compile(r"(?:.*\.)?\w*norm(?:\.\d+)?\.bias")


def canonical_name(name: str) -> str:
    """`model.midlayer.mlp.up_proj.weight` to `layers.0.mlp.up_proj.weight`."""
    name = name.removeprefix(_PREFIX)
    if name.startswith(_FIRST_LAYER_ALIAS):
        return _FIRST_LAYER + name.removeprefix(_FIRST_LAYER_ALIAS)
    return name


def is_norm_bias(name: str) -> bool:
    """Whether a tensor would shift a norm's output, which RMS norms do not do."""
    return _NORM_BIAS.fullmatch(name) is not None


def reads_values(name: str) -> bool:
    """Whether loading judges a tensor by its values, and not by name and shape alone.

    All others may be on the meta device while a checkpoint is checked.
    """
    return is_norm_bias(name) or any(_APART[key].fullmatch(name) for key in _MAPS)


@dataclass
class Eagle3Checkpoint:
    """One call's worth of checkpoint tensors, sorted by what they are for.

    Attributes:
        d2t: offsets from draft ids to target ids.
        t2d: mask over target ids.
        mask_hidden: P-EAGLE's stand-in for hidden states not yet known.
        weights: everything else by canonical name.
    """

    d2t: CheckpointTensor | None = None
    t2d: CheckpointTensor | None = None
    mask_hidden: CheckpointTensor | None = None
    weights: dict[str, CheckpointTensor] = field(default_factory=dict)

    @classmethod
    def read(cls, tensors: Iterable[tuple[str, torch.Tensor]]) -> "Eagle3Checkpoint":
        """Sort `tensors` by name.

        Raises:
            ValueError: two names stand for one tensor, or a file cannot be read.
        """
        checkpoint = cls()
        for name, tensor in _readable(tensors):
            checkpoint._add(CheckpointTensor(name, tensor))
        return checkpoint

    def _add(self, found: CheckpointTensor) -> None:
        for attribute, pattern in _APART.items():
            if pattern.fullmatch(found.name):
                _refuse_second(getattr(self, attribute), found)
                setattr(self, attribute, found)
                return
        key = canonical_name(found.name)
        _refuse_second(self.weights.get(key), found)
        self.weights[key] = found

    def has_module(self, module: str) -> bool:
        """Whether any tensor of `module` is here, plain or quantised."""
        return any(name.partition(".")[0] == module for name in self.weights)

    @property
    def num_layers(self) -> int:
        """Decoder layers up to the last that is here."""
        numbers = map(_LAYER.match, self.weights)
        return max((int(number[1]) + 1 for number in numbers if number), default=0)

    def tie_head(self, rows: int) -> None:
        """Use own embeddings of `rows` rows as the head that is not here."""
        embedding = self.weights.get("embed_tokens.weight")
        if embedding is None or self.has_module("lm_head"):
            return
        if embedding.tensor.ndim == 2 and len(embedding.tensor) == rows:
            self.weights["lm_head.weight"] = embedding

    def keep_head_rows(self, rows: int, kept: int) -> None:
        """Cut an `lm_head` of `rows` rows, `[rows, ...]`, to the first `kept`."""
        for name, (spelled, tensor) in self.weights.items():
            if name.startswith("lm_head.") and tensor.ndim and len(tensor) == rows:
                self.weights[name] = CheckpointTensor(spelled, tensor[:kept])

    def fill_embedding_rows(self, rows: int, needed: int, width: int) -> None:
        """Lengthen own embeddings `[rows, width]` to `needed` rows with zeros."""
        found = self.weights.get("embed_tokens.weight")
        if found is None or needed == rows:
            return  # padding by nothing would copy a large matrix
        if found.tensor.shape == (rows, width):
            filled = F.pad(found.tensor, (0, 0, 0, needed - rows))
            self.weights["embed_tokens.weight"] = found._replace(tensor=filled)

    def spell(self, canonical: str) -> str:
        """A canonical name as this checkpoint would spell it, for messages."""
        bare = {found.name.removeprefix(_PREFIX) for found in self.weights.values()}
        if any(name.startswith(_FIRST_LAYER_ALIAS) for name in bare) and (
            canonical.startswith(_FIRST_LAYER)
        ):
            canonical = _FIRST_LAYER_ALIAS + canonical.removeprefix(_FIRST_LAYER)
        prefixed = any(f.name.startswith(_PREFIX) for f in self.weights.values())
        return _PREFIX + canonical if prefixed else canonical


def _readable(
    tensors: Iterable[tuple[str, torch.Tensor]],
) -> Iterator[tuple[str, torch.Tensor]]:
    """What `tensors` gives; readers of files raise errors of many types."""
    iterator, after = iter(tensors), ""
    while True:
        try:
            name, tensor = next(iterator)
        except StopIteration:
            return
        except torch.OutOfMemoryError:
            raise
        except Exception as error:
            raise ValueError(
                f"The draft checkpoint cannot be read{after} ({_reason(error)}). Its "
                "file may be damaged, incomplete or absent; fetch it again."
            ) from error
        yield name, tensor
        after = f" after {name}"


def _reason(error: Exception) -> str:
    """The error in one line; torch's own advice on pickles is no good one."""
    kind, text = type(error).__name__, str(error).partition("\n")[0]
    if isinstance(error, UnpicklingError):
        text = "it is damaged, or holds more than tensors"
    return f"{kind}: {text}" if text else kind


def _refuse_second(first: CheckpointTensor | None, second: CheckpointTensor) -> None:
    if first is None:
        return
    if first.name == second.name:
        raise ValueError(
            f"{first.name} comes twice in one load. Deliver each tensor once."
        )
    raise ValueError(
        f"The draft checkpoint holds {first.name} and {second.name}, two names of "
        "one tensor. Keep one of them."
    )

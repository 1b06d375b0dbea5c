# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""A draft's modules as checkpoints name them, and as vLLM asks for them.

A quantisation config names modules as the checkpoint does: literally or by patterns,
under any of the spellings that a checkpoint may use. vLLM asks for a module by another
name: with `model.` in front, with the layer counted after the target's layers, and for
q/k/v or gate/up as one. A draft has few modules, so every entry of a config is tried on
each of them here, and comes out as the literal names that vLLM will ask for.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from .eagle3_config import Eagle3DraftConfig
from .eagle3_slots import StackedModules

# Whether an entry of a quantisation config means the module of this name.
Matches: TypeAlias = Callable[[str, str], bool]

# Of any family; a name that a draft lacks is never asked for.
_PARTS = (
    *(f"self_attn.{name}" for name in ("q_proj", "k_proj", "v_proj", "o_proj")),
    *(f"self_attn.{name}" for name in ("q_a_proj", "q_b_proj")),
    *(f"self_attn.{name}" for name in ("kv_a_proj_with_mqa", "kv_b_proj")),
    "self_attn.attn",  # holds the scales of the key-value cache
    *(f"mlp.{name}" for name in ("gate_proj", "up_proj", "down_proj")),
)


@dataclass(frozen=True)
class DraftModule:
    """One module that a quantisation config may name.

    Attributes:
        name: canonical, as in `eagle3_checkpoint.py`.
        spellings: names that a config may use for it.
        served: the name by which vLLM asks for it.
    """

    name: str
    spellings: tuple[str, ...]
    served: str


@dataclass(frozen=True)
class _Stack:
    """A module that vLLM computes as one, and those that a checkpoint holds."""

    whole: DraftModule
    parts: tuple[DraftModule, ...]


class DraftModules:
    """All modules of a draft that can be quantised.

    Args:
        stacked: which checkpoint modules vLLM stacks in this family.
    """

    def __init__(self, draft: Eagle3DraftConfig, stacked: StackedModules) -> None:
        # vLLM asks for `fc` and the head under these very names.
        self._modules = [_top_level("fc"), _top_level("lm_head")]
        self._stacks: list[_Stack] = []
        for index in range(draft.num_layers):
            parts = {part: _in_layer(draft, index, part) for part in _PARTS}
            self._modules += parts.values()
            self._stacks += _stacks(draft, index, parts, stacked)

    def has(self, name: str) -> bool:
        """Whether `name` is a module, stacked ones included."""
        return any(name in spellings for spellings, _ in self.literal_names())

    def literal_names(self) -> list[tuple[tuple[str, ...], str]]:
        """Of each module the names that a config may use, and the one vLLM uses."""
        modules = [*self._modules, *(stack.whole for stack in self._stacks)]
        return [(module.spellings, module.served) for module in modules]

    def choose(
        self,
        entries: Mapping[str, Any],
        matches: Matches,
        default: Any = None,
        key: str = "quantization_config",
    ) -> dict[str, Any]:
        """What `entries` say about each module, by the name that vLLM asks for.

        Args:
            entries: values by literal name or pattern; the first that matches counts.
            default: what holds for modules that no entry names.
            key: of the draft's config, for the message.

        Raises:
            ValueError: parts of a stacked module would differ.
        """
        chosen = {m.name: _first(entries, matches, m) for m in self._modules}
        served = {}
        for stack in self._stacks:
            whole = _first(entries, matches, stack.whole)
            if whole is not None:
                chosen |= {part.name: whole for part in stack.parts}
            values = {part.name: chosen[part.name] for part in stack.parts}
            _check_alike(values, default, key)
            served[stack.whole.served] = next(iter(values.values()))
        served |= {module.served: chosen[module.name] for module in self._modules}
        return {name: value for name, value in served.items() if value is not None}


def _first(
    entries: Mapping[str, Any], matches: Matches, module: DraftModule
) -> Any | None:
    for entry, value in entries.items():
        if any(matches(entry, spelling) for spelling in module.spellings):
            return value
    return None


def _check_alike(values: Mapping[str, Any], default: Any, key: str) -> None:
    effective = {n: default if v is None else v for n, v in values.items()}
    (first, reference), *others = effective.items()
    different = [name for name, value in others if value != reference]
    if different:
        raise ValueError(
            f"{key} in the draft's config treats {first} and {', '.join(different)} "
            "differently, but vLLM computes them as one matrix. Quantise all of "
            f"{', '.join(values)} alike, or none of them, and re-export the draft."
        )


def _top_level(name: str) -> DraftModule:
    return DraftModule(name, (name, f"model.{name}"), name)


def _in_layer(draft: Eagle3DraftConfig, index: int, part: str) -> DraftModule:
    layers = [f"layers.{index}", *(["midlayer"] if index == 0 else [])]
    names = [f"{layer}.{part}" for layer in layers]
    spellings = [*names, *(f"model.{name}" for name in names)]
    served = f"model.layers.{draft.first_layer_id + index}.{part}"
    if draft.first_layer_id >= draft.num_layers:
        # Written for vLLM by hand; no layer of the draft has that number itself.
        spellings.append(served)
    return DraftModule(names[0], tuple(spellings), served)


def _stacks(
    draft: Eagle3DraftConfig,
    index: int,
    parts: Mapping[str, DraftModule],
    stacked: StackedModules,
) -> Iterator[_Stack]:
    for whole, names in stacked.items():
        paths = [path for path in parts if path.rpartition(".")[2] in names]
        parent = paths[0].rpartition(".")[0]
        module = _in_layer(draft, index, f"{parent}.{whole}")
        yield _Stack(module, tuple(parts[path] for path in paths))

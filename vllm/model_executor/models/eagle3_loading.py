# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""From checkpoint tensors to filled parameters, with nothing missing and none lost.

All checks run before the first parameter changes. vLLM's own completeness check sees
only stacked parameters, so a lone missing `k_proj` would pass it; this one looks at
checkpoint names.
"""

import re
from collections.abc import Iterator

from torch import nn
from vllm.logger import init_logger
from vllm.model_executor.layers.quantization import QuantizationConfig

from .draft_vocabulary import CheckpointTensor
from .eagle3_checkpoint import Eagle3Checkpoint
from .eagle3_config import Eagle3DraftConfig
from .eagle3_slots import StackedModules, WeightSlot, weight_slots
from .utils import AutoWeightsLoader, WeightsMapper

logger = init_logger(__name__)

_HEAD = "lm_head."
_TRUNK = "model."

# What a draft's config lacks when a tensor has no place in the model.
_HINTS = (
    (re.compile(r"input_norm\."), "norm_before_fc: true"),
    (re.compile(r"fc_norm\."), "fc_norm: true"),
    (re.compile(r".*self_attn\..*\.bias"), "attention_bias: true"),
    (re.compile(r".*mlp\..*\.bias"), "mlp_bias: true"),
    (re.compile(r".*\.[qk]_norm\."), "architectures: [Eagle3Qwen3ForCausalLM]"),
    (re.compile(r"layers\.[1-9]\d*\."), "a larger num_hidden_layers"),
)

# Left over from training or from other runtimes; no output depends on them.
_LEFTOVERS = (
    re.compile(r".*rotary_emb\.(?:inv_freq|cos_cached|sin_cached)"),
    re.compile(r"layers\.[1-9]\d*\.hidden_norm\.weight"),
)
_FC = re.compile(r"fc\..*")


class Eagle3WeightLoader:
    """Loads `Eagle3Checkpoint`s into one draft model.

    Args:
        model: the draft with `model` (trunk) and `lm_head`.
        stacked: which checkpoint modules vLLM stacks in this family.
        quant_config: of the draft.
    """

    def __init__(
        self,
        model: nn.Module,
        draft: Eagle3DraftConfig,
        stacked: StackedModules,
        quant_config: QuantizationConfig | None,
    ) -> None:
        self._model = model
        self._draft = draft
        self._stacked = stacked
        self._quant_config = quant_config
        self._quantisation_names = _quantisation_names(quant_config)

    def load(
        self, checkpoint: Eagle3Checkpoint, *, complete: bool, shared: frozenset[str]
    ) -> set[str]:
        """Fill parameters and return their names.

        Args:
            complete: whether the checkpoint must fill every required parameter.
            shared: modules of the target (`lm_head`, `embed_tokens`) that the draft
                uses as its own: not required, and never written.

        Raises:
            ValueError: unknown or missing tensors, or a wrong shape.
        """
        slots = weight_slots(self._model, self._stacked)
        weights = dict(self._used(checkpoint, shared))
        unknown = [
            found.name for name, found in weights.items() if not self._has(slots, name)
        ]
        if complete:
            self._check_layers(checkpoint)
        missing = self._missing(slots, weights, shared) if complete else []
        _refuse_names(type(self._model).__name__, checkpoint, unknown, missing)
        for name, found in weights.items():
            self._check_shape(slots, name, found)
        loader = AutoWeightsLoader(self._model)
        tensors = ((name, found.tensor) for name, found in weights.items())
        return loader.load_weights(tensors, mapper=_stacking(self._stacked))

    def _check_layers(self, checkpoint: Eagle3Checkpoint) -> None:
        """Say in one sentence what would else be a list of all names of a layer."""
        expected, found = self._draft.num_layers, checkpoint.num_layers
        if 0 < found < expected:
            raise ValueError(
                f"num_hidden_layers is {expected} in the draft's config, but the "
                f"checkpoint holds {found}. Set num_hidden_layers to {found}."
            )

    def _used(
        self, checkpoint: Eagle3Checkpoint, shared: frozenset[str]
    ) -> Iterator[tuple[str, CheckpointTensor]]:
        """Weights with an effect, by the model's name; one warning for the rest."""
        unused = []
        for canonical, found in checkpoint.weights.items():
            if self._is_unused(canonical, shared):
                unused.append(found.name)
            else:
                yield _qualified(canonical), found
        if checkpoint.mask_hidden and not self._draft.parallel_drafting:
            unused.append(checkpoint.mask_hidden.name)
        if unused:
            logger.warning(
                "EAGLE-3 draft tensors that this configuration does not use: %s",
                ", ".join(unused),
            )

    def _is_unused(self, canonical: str, shared: frozenset[str]) -> bool:
        if canonical.partition(".")[0] in shared:
            return True
        if _FC.fullmatch(canonical) and not self._draft.use_aux_hidden_state:
            return True
        return any(pattern.fullmatch(canonical) for pattern in _LEFTOVERS)

    def _has(self, slots: dict[str, WeightSlot], name: str) -> bool:
        renamed = self._quantisation_names.map_name(name)
        if renamed is None or renamed in slots:
            return True
        if renamed in {slot.parameter for slot in slots.values()}:
            return True  # stacked by the exporter already
        config = self._quant_config
        return config is not None and renamed.endswith(
            config._ignore_unexpected_suffixes
        )

    def _missing(
        self,
        slots: dict[str, WeightSlot],
        weights: dict[str, CheckpointTensor],
        shared: frozenset[str],
    ) -> list[str]:
        delivered = {self._quantisation_names.map_name(name) for name in weights}
        return [
            name.removeprefix(_TRUNK)
            for name, slot in slots.items()
            if slot.required
            and not {name, slot.parameter} & delivered
            and name.removeprefix(_TRUNK).partition(".")[0] not in shared
        ]

    def _check_shape(
        self, slots: dict[str, WeightSlot], name: str, found: CheckpointTensor
    ) -> None:
        slot = slots.get(name)
        if slot is None or slot.shape is None:
            return
        if tuple(found.tensor.shape) != slot.shape:
            raise ValueError(
                f"{found.name} has shape {list(found.tensor.shape)}, but the draft's "
                f"config asks for {list(slot.shape)}."
                f"{self._shape_hint(name, found)} Correct the config, or re-export the "
                "draft."
            )

    def _shape_hint(self, name: str, found: CheckpointTensor) -> str:
        if name != "model.fc.weight":
            return ""
        return (
            f" It reads {self._draft.num_aux_hidden_states} auxiliary hidden states of "
            f"{self._draft.target_hidden_size}; num_aux_hidden_states or "
            "eagle_aux_hidden_state_layer_ids sets their number."
        )


def _qualified(canonical: str) -> str:
    return canonical if canonical.startswith(_HEAD) else _TRUNK + canonical


def _stacking(stacked: StackedModules) -> WeightsMapper:
    return WeightsMapper(
        orig_to_new_stacked={
            f".{part}.": (f".{whole}.", shard)
            for whole, parts in stacked.items()
            for part, shard in parts.items()
        }
    )


def _quantisation_names(config: QuantizationConfig | None) -> WeightsMapper:
    """How the draft's quantisation format renames checkpoint tensors, if at all."""
    if config is None:
        return WeightsMapper()
    return config.get_cache_scale_mapper() | config.get_checkpoint_weight_mapper()


def _refuse_names(
    model: str, checkpoint: Eagle3Checkpoint, unknown: list[str], missing: list[str]
) -> None:
    sentences = []
    if missing:
        spelled = ", ".join(checkpoint.spell(name) for name in missing)
        sentences.append(
            f"The draft checkpoint lacks {spelled}. {model} has no other source for "
            "them; re-export the draft, or correct the config that asks for them."
        )
    if unknown:
        sentences.append(
            f"The draft checkpoint holds {', '.join(unknown)}, which {model} has no "
            f"place for.{_hint(unknown)}"
        )
    if sentences:
        raise ValueError(" ".join(sentences))


def _hint(unknown: list[str]) -> str:
    keys = [
        key
        for pattern, key in _HINTS
        if any(pattern.match(name.removeprefix(_TRUNK)) for name in unknown)
    ]
    if not keys:
        return " Remove them from the checkpoint if the draft does not need them."
    return f" The draft's config may lack {', '.join(keys)}."

# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""From checkpoint tensors to filled parameters, with nothing missing and none lost.

All checks run before the first parameter changes. vLLM's own completeness check sees
only stacked parameters, so a lone missing `k_proj` would pass it; this one looks at
checkpoint names.
"""

import re
from collections.abc import Iterator

import torch
from torch import nn
from vllm.logger import init_logger
from vllm.model_executor.layers.quantization import QuantizationConfig

from .draft_vocabulary import CheckpointTensor
from .eagle3_checkpoint import Eagle3Checkpoint, is_norm_bias
from .eagle3_config import Eagle3DraftConfig
from .eagle3_packing import refuse_packed, repack
from .eagle3_quant_cache import (
    check_cache_scales,
    is_spare,
    load_latent_scales,
    place_of,
)
from .eagle3_quant_dtypes import check_dtype
from .eagle3_refusals import check_slot, refuse_names
from .eagle3_slots import TRUNK, StackedModules, WeightSlot, weight_slots
from .utils import AutoWeightsLoader, WeightsMapper

logger = init_logger(__name__)

_HEAD = "lm_head."

# Left over from training or from other runtimes; no output depends on them.
_LEFTOVERS = (
    re.compile(r".*rotary_emb\.(?:inv_freq|cos_cached|sin_cached)"),
    re.compile(r"layers\.[1-9]\d*\.hidden_norm\.weight"),
)
_COMBINER = re.compile(r"(?:fc|input_norm|fc_norm)\..*")


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
        weights = dict(self._used(checkpoint, slots, shared))
        if complete:
            self._check_layers(checkpoint)
        missing = self._missing(slots, weights, shared) if complete else []
        unknown = [n for name, (n, _) in weights.items() if name not in slots]
        if not complete:
            refuse_packed(self._model, slots, weights)
        for name, found in weights.items():
            if name in slots:
                check_dtype(found, slots[name].dtype, self._quant_config)
        refuse_names(self._model, self._draft, checkpoint, unknown, missing)
        if complete:
            check_cache_scales(weights, self._quant_config)
        for name in weights:
            check_slot(self._draft, slots, weights, name)
        loaded = self._fill(weights)
        repack(self._model, loaded)
        return loaded

    def _fill(self, weights: dict[str, CheckpointTensor]) -> set[str]:
        current = ""
        loaded = load_latent_scales(self._model, weights)

        def tensors() -> Iterator[tuple[str, torch.Tensor]]:
            nonlocal current
            for name, found in weights.items():
                if name not in loaded:
                    current = found.name
                    yield name, found.tensor

        loader = AutoWeightsLoader(self._model)
        mapper = _stacking(self._stacked)
        try:
            return loaded | loader.load_weights(tensors(), mapper=mapper)
        except torch.OutOfMemoryError:
            raise
        except (AssertionError, AttributeError, RuntimeError) as error:
            # Of quantised tensors only vLLM's own loaders know the shape.
            raise ValueError(
                f"{current} does not fit the draft ({type(error).__name__}: {error}). "
                "Correct the draft's config, or re-export the draft."
            ) from error

    def _check_layers(self, checkpoint: Eagle3Checkpoint) -> None:
        """Say in one sentence what would else be a list of all names of a layer."""
        expected, found = self._draft.num_layers, checkpoint.num_layers
        if found not in (0, expected):
            raise ValueError(
                f"num_hidden_layers is {expected} in the draft's config, but the "
                f"checkpoint holds {found}. Set num_hidden_layers to {found}."
            )

    def _used(
        self,
        checkpoint: Eagle3Checkpoint,
        slots: dict[str, WeightSlot],
        shared: frozenset[str],
    ) -> Iterator[tuple[str, CheckpointTensor]]:
        """Weights with an effect, by the model's name; one warning for the rest."""
        unused = []
        for canonical, found in checkpoint.weights.items():
            name = self._quantisation_names.map_name(_qualified(canonical))
            if name is None or self._is_unused(canonical, shared):
                unused.append(found.name)
                continue
            name = place_of(name, slots)
            weight = slots.get(name.removesuffix("bias") + "weight")
            if _is_zero_bias(found, weight) or is_spare(
                name, slots, self._quant_config
            ):
                unused.append(found.name)
            else:
                yield name, found
        if unused:
            logger.warning(
                "EAGLE-3 draft tensors that this configuration does not use: %s",
                ", ".join(unused),
            )

    def _is_unused(self, canonical: str, shared: frozenset[str]) -> bool:
        if canonical.partition(".")[0] in shared:
            return True
        if _COMBINER.fullmatch(canonical) and not self._draft.use_aux_hidden_state:
            return True
        return any(pattern.fullmatch(canonical) for pattern in _LEFTOVERS)

    def _missing(
        self,
        slots: dict[str, WeightSlot],
        weights: dict[str, CheckpointTensor],
        shared: frozenset[str],
    ) -> list[str]:
        return [
            name.removeprefix(TRUNK)
            for name, slot in slots.items()
            if slot.required
            and name not in weights
            and slot.parameter not in weights
            and name.removeprefix(TRUNK).partition(".")[0] not in shared
        ]


def _is_zero_bias(found: CheckpointTensor, weight: WeightSlot | None) -> bool:
    """Some exporters write biases of norms whether these have any or not.

    The values of one that could not be a bias of `weight` are not looked at.
    """
    shape = tuple(found.tensor.shape)
    fits = is_norm_bias(found.name) and weight is not None and weight.shape == shape
    return fits and not found.tensor.any()


def _qualified(canonical: str) -> str:
    return canonical if canonical.startswith(_HEAD) else TRUNK + canonical


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

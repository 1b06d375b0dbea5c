# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""Weight updates on a CPU, where vLLM computes from packed copies of matrices.

Once loaded, a linear layer on a CPU keeps a packed copy (`cpu_linear`) and, but for the
head, empties its parameter: an update would have no effect, or no place to go. Packed
heads are packed again; other packed layers are refused before anything changes.
"""

from collections.abc import Collection, Mapping

from torch import nn
from vllm.model_executor.layers.quantization.base_config import QuantizeMethodBase

from .draft_vocabulary import CheckpointTensor
from .eagle3_slots import WeightSlot


def refuse_packed(
    model: nn.Module,
    slots: Mapping[str, WeightSlot],
    weights: Mapping[str, CheckpointTensor],
) -> None:
    """Refuse `weights` whose parameter has been packed and emptied.

    Raises:
        ValueError: naming the first such tensor.
    """
    for name, found in weights.items():
        slot = slots.get(name)
        if slot is not None and _is_emptied(model, slot.parameter):
            raise ValueError(
                f"{found.name} cannot be updated: vLLM has packed it for this CPU. "
                "Restart the engine with the new draft checkpoint."
            )


def repack(model: nn.Module, loaded: Collection[str]) -> None:
    """Pack again what has been packed from a parameter that is now another."""
    for name in loaded:
        module = model.get_submodule(name.rpartition(".")[0])
        method = getattr(module, "quant_method", None)
        packed = hasattr(module, "cpu_linear")
        if packed and isinstance(method, QuantizeMethodBase):
            weight = module.get_parameter("weight")
            if not weight.is_meta:
                method.process_weights_after_loading(module)


def _is_emptied(model: nn.Module, parameter: str) -> bool:
    path, _, leaf = parameter.rpartition(".")
    module = model.get_submodule(path)
    return hasattr(module, "cpu_linear") and getattr(module, leaf).numel() == 0

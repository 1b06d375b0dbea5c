# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""Weight updates where vLLM computes from something else than what was loaded.

Once loaded, a linear layer on a CPU keeps a packed copy (`cpu_linear`) and, but for the
head, empties its parameter: an update would have no effect, or no place to go. Packed
heads are packed again; other packed layers are refused before anything changes.

Quantised modules are converted for their kernels on every device: transposed, or with
one scale for q, k and v. What a checkpoint holds no longer fits there, or, worse, fits
and means something else, so these updates are refused too, unless vLLM has put the
parameters back first (its layerwise reload).
"""

from collections.abc import Collection, Mapping

from torch import nn
from vllm.model_executor.layers.quantization.base_config import QuantizeMethodBase
from vllm.model_executor.parameter import BasevLLMParameter

from .draft_vocabulary import CheckpointTensor
from .eagle3_slots import WeightSlot, is_quantised

# What quantisation methods call the weight that they make.
_WEIGHTS = ("weight", "weight_packed", "qweight")


def refuse_packed(
    model: nn.Module,
    slots: Mapping[str, WeightSlot],
    weights: Mapping[str, CheckpointTensor],
) -> None:
    """Refuse `weights` whose parameter has been emptied, or converted for a kernel.

    Only for updates: what is loaded first, vLLM converts afterwards.

    Raises:
        ValueError: naming the first such tensor.
    """
    converted = {
        name.rpartition(".")[0]
        for name, slot in slots.items()
        if _is_converted(model, slot.parameter)
    }
    for name, found in weights.items():
        slot = slots.get(name)
        if slot is not None and _is_emptied(model, slot.parameter):
            raise ValueError(
                f"{found.name} cannot be updated: vLLM has packed it for this CPU. "
                "Restart the engine with the new draft checkpoint."
            )
        if name.rpartition(".")[0] in converted:
            raise ValueError(
                f"{found.name} cannot be updated: vLLM has converted this quantised "
                "module for its kernels. Restart the engine with the new draft "
                "checkpoint."
            )


def repack(model: nn.Module, loaded: Collection[str]) -> None:
    """Pack again what has been packed from a parameter that is now another."""
    for name in loaded:
        module = model.get_submodule(name.rpartition(".")[0])
        method = getattr(module, "quant_method", None)
        packed = hasattr(module, "cpu_linear")
        if packed and isinstance(method, QuantizeMethodBase):
            weight = module.get_parameter("weight")
            # One that is empty was packed before; what is loaded is a bias beside it.
            if not weight.is_meta and weight.numel() > 0:
                method.process_weights_after_loading(module)


def _is_converted(model: nn.Module, parameter: str) -> bool:
    """Whether the module's weight is no longer as its quantisation method made it.

    Its class does not tell: up to 0.32, vLLM converts into another parameter, and from
    0.33 on into the same one. What vLLM has put back for a reload is of that class and
    has no data yet.
    """
    module = model.get_submodule(parameter.rpartition(".")[0])
    if not is_quantised(module):
        return False
    weights = [getattr(module, leaf, None) for leaf in _WEIGHTS]
    return not any(
        isinstance(weight, BasevLLMParameter) and weight.is_meta for weight in weights
    )


def _is_emptied(model: nn.Module, parameter: str) -> bool:
    path, _, leaf = parameter.rpartition(".")
    module = model.get_submodule(path)
    return hasattr(module, "cpu_linear") and getattr(module, leaf).numel() == 0

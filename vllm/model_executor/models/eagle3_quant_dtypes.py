# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""Which dtype a checkpoint tensor must have for its parameter.

Casting between floating-point dtypes keeps a value; casting to or from the dtype of a
quantised weight loses what it means. vLLM's loaders cast all the same, with at most a
warning: weights between -1 and 1 become zeros in an int8 parameter.
"""

import torch
from vllm.model_executor.layers.quantization import QuantizationConfig

from .draft_vocabulary import CheckpointTensor
from .eagle3_quant_formats import ignore_key

_PLAIN = (torch.float32, torch.bfloat16, torch.float16, torch.float64)


def check_dtype(
    found: CheckpointTensor, wanted: torch.dtype, config: QuantizationConfig | None
) -> None:
    """Refuse a tensor whose values mean something else in its parameter.

    Args:
        wanted: dtype of the parameter.
        config: of the draft, `None` where it is not quantised.

    Raises:
        ValueError: naming the tensor, its dtype and what is allowed.
    """
    module, _, leaf = found.name.rpartition(".")
    if _fits(found.tensor.dtype, wanted, leaf):
        return
    start = f"{found.name} is {_spell(found.tensor.dtype)}, but"
    if "scale" in leaf:
        kind = "in floating point" if wanted in _PLAIN else _spell(wanted)
        raise ValueError(f"{start} this scale must be {kind}. Re-export the draft.")
    if config is None:
        raise ValueError(
            f"{start} the draft's config has no quantization_config, so it must be in "
            f"floating point ({', '.join(map(_spell, _PLAIN))}). Add the "
            "quantization_config that the draft was quantised with, or re-export it."
        )
    if wanted in _PLAIN:
        raise ValueError(
            f"{start} the draft's quantization_config leaves {module} in floating "
            f"point. Correct {ignore_key(config)}, or re-export the draft."
        )
    raise ValueError(
        f"{start} the draft's quantization_config asks for {_spell(wanted)}. Re-export "
        f"the draft, or list {module} in {ignore_key(config)} if it was not quantised."
    )


def _fits(dtype: torch.dtype, wanted: torch.dtype, leaf: str) -> bool:
    if dtype == wanted:
        return True
    if wanted in _PLAIN:
        # A power of two is exact in any of them; zero points of a cache are not used.
        power_of_two = "scale" in leaf and dtype == torch.float8_e8m0fnu
        unused = leaf.endswith("zero_point") and _is_integer(dtype)
        return dtype in _PLAIN or power_of_two or unused
    if not (_is_integer(dtype) and _is_integer(wanted)) or "weight" in leaf:
        # Packed values in a wider integer would be other values. `weight_shape` and
        # zero points of weights are written in the parameter's own dtype.
        return False
    return torch.promote_types(dtype, wanted) == wanted


def _is_integer(dtype: torch.dtype) -> bool:
    return not (dtype.is_floating_point or dtype.is_complex or dtype == torch.bool)


def _spell(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")

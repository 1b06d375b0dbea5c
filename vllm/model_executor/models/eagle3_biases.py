# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""Biases of a draft's projections: the checkpoint decides, and the config is checked.

Exporters disagree on what `attention_bias` covers (q/k/v, or o as well), and some ship
biases without saying so. Before the first load each projection gets a bias if the
checkpoint holds one for it, and `o_proj` loses one that the config alone promised.
"""

from collections.abc import Collection

import torch
from torch import nn
from vllm.logger import init_logger
from vllm.model_executor.layers.linear import ColumnParallelLinear, LinearBase
from vllm.model_executor.utils import set_weight_attrs

from .eagle3_checkpoint import Eagle3Checkpoint, is_norm_bias
from .eagle3_config import Eagle3DraftConfig
from .eagle3_slots import StackedModules

logger = init_logger(__name__)


def fit_biases(
    model: nn.Module,
    draft: Eagle3DraftConfig,
    checkpoint: Eagle3Checkpoint,
    stacked: StackedModules,
    without: Collection[str],
) -> None:
    """Give the projections of `model` the biases that `checkpoint` has for them.

    A kind of projection has a bias in every layer or in none; one that the checkpoint
    then lacks is missing like any other tensor.

    Args:
        without: modules of the family that cannot have a bias.

    Raises:
        ValueError: the config asks for biases and the checkpoint holds none.
    """
    shipped = _biased_modules(checkpoint)
    _refuse_empty_promises(draft, shipped)
    added: set[str] = set()
    for path, module in model.named_modules():
        kind = path.rpartition(".")[2]
        if not isinstance(module, LinearBase) or kind in without:
            continue
        biased = {kind, *stacked.get(kind, ())} & shipped.keys()
        if biased and module.bias is None:
            _set_bias(module, next(model.parameters()).device)
            added |= biased
        elif not biased and module.bias is not None and kind == "o_proj":
            module.register_parameter("bias", None)
    if added:
        logger.info(
            "EAGLE-3 draft: the checkpoint holds biases of %s, which the draft's "
            "config does not mention. They are used.",
            ", ".join(sorted(added)),
        )


def _biased_modules(checkpoint: Eagle3Checkpoint) -> dict[str, str]:
    """Last part of a module's name (`q_proj`) -> the part before it (`self_attn`)."""
    return {
        module: parent
        for name in checkpoint.weights
        if name.endswith(".bias") and not is_norm_bias(name)
        for parent, module in [("." + name).split(".")[-3:-1]]
    }


def _refuse_empty_promises(draft: Eagle3DraftConfig, shipped: dict[str, str]) -> None:
    layer, parents = draft.layer, set(shipped.values())
    promises = (
        (layer.qkv_bias or layer.o_bias, "self_attn", layer.attention_bias_key),
        (layer.mlp_bias, "mlp", "mlp_bias"),
    )
    for promised, parent, key in promises:
        if promised and parent not in parents:
            raise ValueError(
                f"{key} is true in the draft's config, but the checkpoint holds no "
                f"bias of {parent}. Set {key} to false, or re-export the draft with "
                "its biases."
            )


def _set_bias(module: LinearBase, device: torch.device) -> None:
    """As vLLM's linear layers build their own; its reload leaves biases in place."""
    size = module.output_size
    if isinstance(module, ColumnParallelLinear):
        size = module.output_size_per_partition
    values = torch.empty(size, dtype=module.params_dtype, device=device)
    bias = nn.Parameter(values, requires_grad=False)
    set_weight_attrs(bias, {"output_dim": 0, "weight_loader": module.weight_loader})
    module.register_parameter("bias", bias)

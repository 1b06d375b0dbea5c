# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""The draft's own quantisation, spoken in the model's names.

A draft is quantised by its own config, never by the target's. That config names modules
as the checkpoint does; vLLM asks for them under other names: with `model.` in front,
with the layer counted after the target's layers, and q/k/v and gate/up stacked.
"""

import re

from vllm.config import VllmConfig
from vllm.model_executor.layers.quantization import QuantizationConfig

from .eagle3_config import Eagle3DraftConfig
from .eagle3_slots import StackedModules
from .utils import WeightsMapper, get_draft_quant_config


def draft_quantization(
    vllm_config: VllmConfig, draft: Eagle3DraftConfig, stacked: StackedModules
) -> QuantizationConfig | None:
    """The draft's quantisation config, or `None` where it is not quantised."""
    config = get_draft_quant_config(vllm_config)
    if config is not None:
        config.packed_modules_mapping.update(
            {whole: list(parts) for whole, parts in stacked.items()}
        )
        config.apply_vllm_mapper(_module_names(draft))
    return config


def _module_names(draft: Eagle3DraftConfig) -> WeightsMapper:
    renames = {}
    # Last layer first: a name that has been shifted must not meet a later rule.
    for index in reversed(range(draft.num_layers)):
        shifted = draft.first_layer_id + index
        renames[rf"layers\.{index}\."] = f"model.layers.{shifted}."
    renames[r"midlayer\."] = f"model.layers.{draft.first_layer_id}."
    renames[r"fc$"] = "fc"
    return WeightsMapper(
        orig_to_new_regex={
            re.compile(rf"^(?:model\.)?{old}"): new for old, new in renames.items()
        }
    )

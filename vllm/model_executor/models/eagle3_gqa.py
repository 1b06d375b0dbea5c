# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""What drafts with grouped-query attention share: stacking, and the first q/k/v.

vLLM's attention layers read as many features as they write; a draft's first layer reads
embeddings and hidden states side by side.
"""

from vllm.model_executor.layers.linear import QKVParallelLinear
from vllm.model_executor.layers.quantization import QuantizationConfig

from .eagle3 import attention_input_size
from .eagle3_config import Eagle3DraftConfig
from .eagle3_slots import StackedModules
from .llama import LlamaAttention
from .qwen3 import Qwen3Attention

GQA_STACKED_MODULES: StackedModules = {
    "qkv_proj": {"q_proj": "q", "k_proj": "k", "v_proj": "v"},
    "gate_up_proj": {"gate_proj": 0, "up_proj": 1},
}


def qkv_projection(
    attention: LlamaAttention | Qwen3Attention,
    draft: Eagle3DraftConfig,
    index: int,
    quant_config: QuantizationConfig | None,
    prefix: str,
) -> QKVParallelLinear:
    """`attention`'s q/k/v projection, as wide as layer `index` of the draft needs."""
    return QKVParallelLinear(
        attention_input_size(draft, index),
        attention.head_dim,
        attention.total_num_heads,
        attention.total_num_kv_heads,
        bias=draft.layer.qkv_bias,
        quant_config=quant_config,
        prefix=prefix,
    )

# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""What drafts with grouped-query attention share: the first layer's wider q/k/v.

vLLM's attention layers read as many features as they write; a draft's first layer reads
embeddings and hidden states side by side.
"""

from typing import TypeVar

from vllm.model_executor.layers.linear import QKVParallelLinear

from .eagle3_layer import LayerSite
from .llama import LlamaAttention
from .qwen3 import Qwen3Attention

Attention = TypeVar("Attention", LlamaAttention, Qwen3Attention)


def with_input_size(attention: Attention, site: LayerSite) -> Attention:
    """Give `attention` a q/k/v projection from `site.attention_input_size` features."""
    attention.qkv_proj = QKVParallelLinear(
        site.attention_input_size,
        attention.head_dim,
        attention.total_num_heads,
        attention.total_num_kv_heads,
        bias=site.draft.layer.qkv_bias,
        quant_config=site.quant_config,
        prefix=f"{site.prefix}.self_attn.qkv_proj",
    )
    return attention

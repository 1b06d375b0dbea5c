# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""A loaded draft's outputs without an engine, beside the reference's.

vLLM's attention reads a KV cache that only an engine has. In its place comes plain
causal attention over the sequence at hand, which takes from the model what is the
model's: queries, keys, values and scales.
"""

import functools
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

from .checkpoint import Checkpoint
from .reference import Outputs, ReferenceDraft

TOKENS = 6
# Far enough apart for every rope variant to tell.
POSITIONS = torch.tensor([0, 1, 7, 40, 150, 400])


def attend_without_cache(model: nn.Module) -> None:
    """Replace vLLM's attention in all layers of the draft."""
    for layer in model.model.layers:
        wrapper = getattr(layer.self_attn, "mla_attn", None)
        if wrapper is None:
            attention = layer.self_attn.attn
            attention.forward = functools.partial(_grouped_query, attention)
        else:
            attention = wrapper.mla_attn
            attention.forward = functools.partial(_latent, attention)


def _attend(
    query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, scale: float
) -> torch.Tensor:
    heads_first = (x.transpose(0, 1) for x in (query, key, value))
    attended = F.scaled_dot_product_attention(*heads_first, is_causal=True, scale=scale)
    return attended.transpose(0, 1).flatten(1)


def _grouped_query(
    attention: Any, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor
) -> torch.Tensor:
    heads, kv_heads = attention.num_heads, attention.num_kv_heads
    query = query.unflatten(1, (heads, -1))
    key, value = key.unflatten(1, (kv_heads, -1)), value.unflatten(1, (kv_heads, -1))
    groups = heads // kv_heads
    key, value = key.repeat_interleave(groups, 1), value.repeat_interleave(groups, 1)
    return _attend(query, key, value, attention.impl.scale)


def _latent(
    attention: Any,
    query: torch.Tensor,
    folded: torch.Tensor,
    shared_key: torch.Tensor,
    **_: Any,
) -> torch.Tensor:
    """Unfold keys and values with what vLLM has made of `kv_b_proj`."""
    key = torch.einsum("tl,hpl->thp", folded, attention.W_UK_T)
    value = torch.einsum("tl,hlv->thv", folded, attention.W_UV)
    shared = shared_key.reshape(len(key), 1, -1).expand(-1, key.shape[1], -1)
    key = torch.cat((key, shared), -1)
    return _attend(query.reshape(key.shape), key, value, attention.scale)


class SharedWeights:
    """How the target's head computes, for a draft that has none of its own."""

    def __init__(self, weight: torch.Tensor) -> None:
        self._weight = weight

    def apply(self, _: nn.Module, hidden: torch.Tensor, bias: Any = None) -> Any:
        return F.linear(hidden, self._weight)


def share_head(model: nn.Module, weight: torch.Tensor) -> None:
    """Let the draft compute with the target's head, as vLLM's runners do."""
    model.lm_head.weight = nn.Parameter(weight, requires_grad=False)
    model.lm_head.quant_method = SharedWeights(weight)


def check_against_reference(model: nn.Module, checkpoint: Checkpoint) -> None:
    """Assert that the model computes what the papers say of this checkpoint."""
    reference = make_reference(model, checkpoint)
    attend_without_cache(model)
    mine, theirs = _outputs(model, checkpoint, reference)
    for name in ("combined", "hidden", "following", "logits"):
        torch.testing.assert_close(
            getattr(mine, name),
            getattr(theirs, name),
            rtol=1e-3,
            atol=1e-4,
            msg=lambda text, name=name: f"{name}: {text}",
        )
    _check_ids(model, reference, theirs)
    if reference.mask is not None and checkpoint.parallel:
        torch.testing.assert_close(model.mask_hidden, reference.mask.reshape(1, -1))


def make_reference(model: nn.Module, checkpoint: Checkpoint) -> ReferenceDraft:
    """The reference; both get one head of the target where the draft has none."""
    target_vocab = checkpoint.target["vocab_size"]
    names = {name.removeprefix("model.") for name in checkpoint.tensors}
    is_tied = checkpoint.config.get("tie_word_embeddings") and (
        "embed_tokens.weight" in names
    )
    has_head = "lm_head.weight" in names or is_tied
    require(model.has_own_lm_head == has_head, "has_own_lm_head")
    head = None
    if not has_head:
        generator = torch.Generator().manual_seed(5)
        hidden = model.model.norm.weight.shape[0]
        head = torch.randn(target_vocab, hidden, generator=generator) / 8
        share_head(model, head)
    return ReferenceDraft(checkpoint.config, checkpoint.tensors, target_vocab, head)


@torch.inference_mode()
def _outputs(
    model: nn.Module, checkpoint: Checkpoint, reference: ReferenceDraft
) -> tuple[Outputs, Outputs]:
    generator = torch.Generator().manual_seed(3)
    weights = reference.weights
    hidden = weights["norm.weight"].shape[0]
    width = weights["fc.weight"].shape[1] if "fc.weight" in weights else hidden
    states = torch.randn(TOKENS, width, generator=generator)
    ids = torch.randint(checkpoint.target["vocab_size"], (TOKENS,), generator=generator)
    embeds = torch.randn(TOKENS, hidden, generator=generator)
    own = weights.get("embed_tokens.weight")
    require(model.has_own_embed_tokens == (own is not None), "has_own_embed_tokens")
    if own is not None:
        embeds = own[ids % len(own)]
    combined = model.combine_hidden_states(states)
    last, following = model(
        ids % len(own) if own is not None else ids,
        _positions(reference),
        combined,
        None if own is not None else embeds,
    )
    mine = Outputs(combined, last, following, model.compute_logits(last))
    return mine, reference(embeds, states, POSITIONS)


def _positions(reference: ReferenceDraft) -> torch.Tensor:
    """Text has one position for all three sections of multimodal rope."""
    config = reference.config
    scaling = config.get("rope_parameters") or config.get("rope_scaling") or {}
    return POSITIONS.expand(3, -1) if "mrope_section" in scaling else POSITIONS


def _check_ids(model: nn.Module, reference: ReferenceDraft, theirs: Outputs) -> None:
    ids = reference.target_ids
    offsets = model.draft_id_to_target_id
    shift = 0 if offsets is None else offsets
    require(torch.equal(torch.arange(len(ids)) + shift, ids), "draft_id_to_target_id")
    top = model.get_top_tokens(theirs.hidden)
    require(top.dtype == torch.int64, "dtype of top tokens")
    # Ties in the last digits aside, the winner is the reference's.
    chosen = theirs.logits.gather(1, top[:, None])[:, 0]
    torch.testing.assert_close(chosen, theirs.logits.max(-1).values)


def require(condition: bool, what: str) -> None:
    """An assertion that holds under `python -O` too."""
    if not condition:
        raise AssertionError(f"{what} is not what the checkpoint says")

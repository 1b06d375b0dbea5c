# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""Whatever vLLM's own three files compute for their family, the fork computes too.

Both classes are built from one checkpoint and run on the same inputs. Attention is
replaced by a fixed mixing of its inputs, so that no engine is needed: what enters it,
and what happens to what leaves it, is the draft's own.
"""

import copy
import re

import pytest
import torch
from vllm.model_executor.models.registry import ModelRegistry

from tests.support.checkpoints import HIDDEN, TARGET_VOCAB, target_config
from tests.support.drafts import engine_config
from tests.support.stock import CLASSES, build, make_ready, stock_class

from .conftest import AUX_IDS

TOKENS = 6
EVERY_FOURTH = torch.arange(0, TARGET_VOCAB, 4)


def norms(*names, size=HIDDEN):
    generator = torch.Generator().manual_seed(7)
    return {name: 1 + torch.randn(size, generator=generator) / 8 for name in names}


def biases(layer, *projections):
    sizes = {"q": HIDDEN, "k": HIDDEN // 2, "v": HIDDEN // 2, "o": HIDDEN}
    return {
        f"{layer}.self_attn.{name}_proj.bias": torch.randn(sizes[name])
        for name in projections
    }


ALL = ("llama", "qwen3", "deepseek")
GQA = ("llama", "qwen3")
# name: (families, keyword arguments of the draft, config keys, further tensors)
OPTIONS = {
    "plain": (ALL, {}, {}, {}),
    "norm_before_residual": (ALL, {}, {"norm_before_residual": True}, {}),
    "norm_output": (ALL, {}, {"norm_output": True}, {}),
    "fc_norm": (
        ALL,
        {},
        {"fc_norm": True},
        norms("fc_norm.0.weight", "fc_norm.1.weight", "fc_norm.2.weight"),
    ),
    "norm_before_fc, nested": (
        GQA,
        {},
        {"eagle_config": {"norm_before_fc": True}},
        norms("input_norm.weight", size=3 * HIDDEN),
    ),
    "norm_before_fc, top level": (
        GQA,
        {},
        {"norm_before_fc": True},
        norms("input_norm.weight", size=3 * HIDDEN),
    ),
    "three layers": (ALL, {"layers": 3}, {}, {}),
    "four auxiliary states": (
        ALL,
        {"aux": 4},
        {"num_aux_hidden_states": 4, AUX_IDS: [1, 3, 5, 7]},
        {},
    ),
    "no auxiliary states": (
        GQA,
        {},
        {"eagle_config": {"use_aux_hidden_state": False}},
        {},
    ),
    "logit_scale": (ALL, {}, {"logit_scale": 0.5}, {}),
    "reduced": (
        ALL,
        {"draft_vocab": 256},
        {},
        {"d2t": EVERY_FOURTH - torch.arange(256)},
    ),
    "attention_bias, llama": (
        ("llama",),
        {},
        {"attention_bias": True},
        biases("midlayer", "q", "k", "v", "o"),
    ),
    "attention_bias, qwen3": (
        ("qwen3",),
        {},
        {"attention_bias": True},
        biases("midlayer", "q", "k", "v"),
    ),
    "sliding window": (
        GQA,
        {"layers": 2},
        {
            "layer_types": ["sliding_attention", "full_attention"],
            "sliding_window": 16,
            "use_sliding_window": True,
        },
        {},
    ),
}
CASES = [
    pytest.param(family, option, id=f"{option}-{family}")
    for option, (families, *_) in OPTIONS.items()
    for family in families
]


def fork_class(family):
    return ModelRegistry.models[CLASSES[family][1]].load_model_cls()


def pair(make_draft, family, option):
    """The fork's and the stock class on one checkpoint, and the config of each."""
    _, shape, keys, further = OPTIONS[option]
    draft = make_draft(family, **shape, **keys)
    draft.tensors |= further
    draft.tensors["embed_tokens.weight"] = torch.randn(TARGET_VOCAB, HIDDEN)
    draft.write()
    pairs = []
    for model_class in (fork_class(family), stock_class(family)):
        config = engine_config(draft.folder)
        tensors = copy.deepcopy(draft.tensors)
        pairs.append((build(model_class, config, tensors), config))
    assert type(pairs[0][0]) is not type(pairs[1][0])
    return pairs


def mix_instead_of_attention(model):
    """Attention without an engine: each input through a fixed random matrix."""
    for layer in model.model.layers:
        latent = getattr(layer.self_attn, "mla_attn", None)
        attention = latent.mla_attn if latent else layer.self_attn.attn
        attention.forward = mixed


def mixed(*inputs, output_shape=None, **_):
    generator = torch.Generator().manual_seed(11)
    total = 0
    for value in (value.flatten(1) for value in inputs):
        width = output_shape[-1] if output_shape is not None else HIDDEN
        total = total + value @ torch.randn(value.shape[-1], width, generator=generator)
    return torch.tanh(total)


@torch.inference_mode()
def outputs(model):
    """Everything that vLLM's runners ask of a draft, on fixed inputs."""
    generator = torch.Generator().manual_seed(3)
    width = HIDDEN * aux_states(model)
    states = model.combine_hidden_states(
        torch.randn(TOKENS, width, generator=generator)
    )
    ids = torch.arange(TOKENS) * 7
    last, following = model(ids, torch.arange(TOKENS), states)
    return {
        "combined": states,
        "hidden states": last,
        "next step's": following,
        "logits": model.compute_logits(last),
        "top": model.get_top_tokens(last),
    }


def aux_states(model):
    """How many target hidden states one token brings, seen from the weights."""
    fc = getattr(model.model, "fc", None)
    return 1 if fc is None else fc.input_size // HIDDEN


def shapes(model):
    """Of all parameters, less those that stock makes and never reads."""
    return {
        name: value.shape
        for name, value in model.named_parameters()
        if not re.search(r"layers\.[1-9]\.hidden_norm", name)
    }


@pytest.mark.parametrize(("family", "option"), CASES)
def test_the_fork_computes_what_stock_computes(make_draft, family, option):
    (fork, _), (stock, _) = pairs = pair(make_draft, family, option)
    assert shapes(fork) == shapes(stock)
    for model, config in pairs:
        make_ready(model, config)
        mix_instead_of_attention(model)
    mine, theirs = outputs(fork), outputs(stock)
    for name in mine:
        torch.testing.assert_close(mine[name], theirs[name], rtol=0, atol=0, msg=name)


@pytest.mark.parametrize("family", GQA)
def test_sliding_windows_follow_layer_types(make_draft, family):
    for model, _ in pair(make_draft, family, "sliding window"):
        windows = [layer.self_attn.attn.sliding_window for layer in model.model.layers]
        assert windows == [16, None]


@pytest.mark.parametrize("family", ALL)
def test_attention_layers_register_after_the_targets(make_draft, family):
    """KV cache is kept by these names, one for each layer of the engine."""
    names = [
        list(config.compilation_config.static_forward_context)
        for _, config in pair(make_draft, family, "three layers")
    ]
    assert names[0] == names[1]
    assert len(names[0]) == 3


@pytest.mark.parametrize("family", ALL)
def test_a_draft_narrower_than_its_target(make_draft, family):
    wide = 2 * HIDDEN
    draft = make_draft(family, target_hidden_size=wide)
    target = target_config(hidden_size=wide)
    draft.tensors["fc.weight"] = torch.randn(HIDDEN, 3 * wide)
    draft.tensors["embed_tokens.weight"] = torch.randn(TARGET_VOCAB, HIDDEN)
    fork = draft.load(target)
    config = engine_config(draft.folder, target)
    stock = build(stock_class(family), config, draft.tensors)
    make_ready(stock, config)
    states = torch.randn(2, 3 * wide)
    combined = fork.combine_hidden_states(states)
    torch.testing.assert_close(combined, stock.combine_hidden_states(states))
    assert combined.shape == (2, HIDDEN)
    del draft.config["target_hidden_size"]
    inferred = draft.load(target).combine_hidden_states(states)
    assert torch.equal(inferred, combined)

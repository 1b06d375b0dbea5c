# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""Keys of a draft's config: what they default to, and what is said of bad values."""

from types import SimpleNamespace

import pytest
import torch
from vllm.model_executor.models.eagle3_config import Eagle3DraftConfig
from vllm.model_executor.models.eagle3_config_keys import ConfigKeys
from vllm.model_executor.models.eagle3_layer_config import DecoderLayerConfig

from tests.support.checkpoints import FAMILIES, HIDDEN, TARGET_VOCAB, target_config
from tests.support.drafts import engine_config

from .test_eagle3_cases import as_speculators

every_family = pytest.mark.parametrize("family", FAMILIES)
gqa_family = pytest.mark.parametrize("family", ["llama", "qwen3"])

LAYER = {"num_attention_heads": 4, "intermediate_size": 256}


def layer(num_layers=1, **config):
    keys = ConfigKeys(SimpleNamespace(**(LAYER | config)))
    return DecoderLayerConfig.resolve(keys, num_layers=num_layers, served_length=512)


def test_absent_keys_of_a_layer_have_defaults():
    found = layer()
    assert (found.num_kv_heads, found.head_dim, found.hidden_act) == (4, None, "silu")
    assert found.max_position_embeddings == 512
    assert (found.qkv_bias, found.o_bias, found.mlp_bias) == (False, False, False)


@pytest.mark.parametrize(
    ("config", "biases"),
    [
        ({"attention_bias": True}, (True, True)),
        ({"bias": True}, (True, True)),
        ({"qkv_bias": True}, (True, False)),
        ({"attention_bias": True, "qkv_bias": False}, (False, True)),
        ({"attention_bias": None, "bias": None}, (False, False)),
    ],
)
def test_where_biases_are_promised(config, biases):
    found = layer(**config)
    assert (found.qkv_bias, found.o_bias) == biases


def test_windows_are_those_of_sliding_layers():
    types = ["full_attention", "sliding_attention"]
    found = layer(num_layers=2, layer_types=types, sliding_window=64)
    assert [found.window_of(0), found.window_of(1)] == [None, 64]


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ({"num_attention_heads": None}, "num_attention_heads is not set"),
        ({"intermediate_size": 0}, "intermediate_size is 0"),
        ({"num_key_value_heads": 3}, "num_key_value_heads is 3"),
        ({"head_dim": "32"}, "head_dim is '32'"),
        ({"hidden_act": "gelu"}, "hidden_act is 'gelu'"),
        ({"attention_bias": "false"}, "attention_bias is 'false'"),
        ({"mlp_bias": 2}, "mlp_bias is 2"),
        ({"layer_types": ["full_attention"]}, "layer_types lists 1 layers"),
        ({"layer_types": ["sliding_attention"] * 2}, "sliding_window is not set"),
    ],
)
def test_a_bad_value_of_a_layer_names_its_key(config, words):
    with pytest.raises(ValueError) as refused:
        layer(num_layers=2, **config)
    assert str(refused.value).startswith(words) or words in str(refused.value)


def resolved(draft, **arguments):
    return Eagle3DraftConfig.resolve(engine_config(draft.write(), **arguments))


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ({"num_hidden_layers": 0}, "num_hidden_layers is 0"),
        ({"num_hidden_layers": 9}, "num_hidden_layers is 9 in the draft's config, mo"),
        ({"fc_norm": "yes"}, "fc_norm is 'yes'"),
        ({"eagle_config": {"norm_before_fc": 3}}, "eagle_config.norm_before_fc is 3"),
        ({"logit_scale": "1"}, "logit_scale is '1'"),
        ({"target_hidden_size": 64}, "target_hidden_size is 64"),
    ],
)
def test_a_bad_value_of_a_draft_names_its_key(make_draft, config, words):
    with pytest.raises(ValueError) as refused:
        resolved(make_draft("llama", **config))
    assert str(refused.value).startswith(words)


@pytest.mark.parametrize(
    ("algorithm", "stated", "expected"),
    [
        ("eagle3", {"norm_before_residual": ...}, (True, False)),
        ("peagle", {"norm_before_residual": ...}, (False, False)),
        ("eagle3", {"norm_before_residual": False}, (False, False)),
        ("peagle", {"norm_before_residual": True, "norm_output": True}, (True, True)),
    ],
)
def test_defaults_of_speculators_are_those_of_its_algorithms(
    make_draft, algorithm, stated, expected
):
    draft = make_draft("llama")
    draft.config = as_speculators(
        draft.config, speculators_model_type=algorithm, mask_token_id=7, **stated
    )
    draft.config = {key: v for key, v in draft.config.items() if v is not ...}
    found = resolved(draft)
    assert (found.norm_before_residual, found.norm_output) == expected


def test_a_plain_draft_takes_its_residual_before_the_norm(make_draft):
    found = resolved(make_draft("llama"))
    assert (found.norm_before_residual, found.norm_output) == (False, False)


# Shapes and dtypes.


@gqa_family
def test_heads_need_not_add_up_to_the_hidden_size(make_draft, family):
    """As in drafts of gpt-oss and Gemma: 4 heads of 64 beside a hidden size of 128."""
    draft = make_draft(family, head_dim=64)
    features = 2 * HIDDEN
    sizes = {"q_proj": (256, features), "o_proj": (HIDDEN, 256)}
    sizes |= {"k_proj": (HIDDEN, features), "v_proj": (HIDDEN, features)}
    if family == "qwen3":
        sizes |= {"q_norm": (64,), "k_norm": (64,)}
    for name, size in sizes.items():
        draft.tensors[f"midlayer.self_attn.{name}.weight"] = torch.rand(size)
    attention = draft.load().model.layers[0].self_attn
    assert (attention.q_size, attention.head_dim) == (256, 64)
    del draft.config["head_dim"]
    sentence = draft.refusal() if family == "llama" else ""
    assert family != "llama" or "head_dim 32" in sentence


@every_family
def test_dtypes_may_differ_and_each_tensor_is_cast_once(make_draft, family):
    draft = make_draft(family)
    dtypes = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
    for place, name in enumerate(draft.tensors):
        draft.tensors[name] = draft.tensors[name].to(dtypes[place % 4])
    model = draft.load(engine={"dtype": "bfloat16"})
    found = dict(model.named_parameters())
    for name in ("norm.weight", "midlayer.hidden_norm.weight", "fc.weight"):
        own = "model." + name.replace("midlayer", "layers.0")
        if found[own].numel():  # vLLM packs fc for the CPU's kernels
            assert torch.equal(found[own], draft.tensors[name].to(found[own].dtype))
    head = draft.tensors["lm_head.weight"]
    assert torch.equal(model.lm_head.weight, head.to(torch.bfloat16))


@every_family
def test_other_hidden_sizes_need_own_embeddings(make_draft, family):
    wide = target_config(hidden_size=2 * HIDDEN)
    draft = make_draft(family)
    draft.tensors["fc.weight"] = torch.rand(HIDDEN, 6 * HIDDEN)
    sentence = draft.refusal(wide)
    assert sentence.startswith(
        "embed_tokens.weight is missing: the draft's hidden_size"
    )
    draft.tensors["embed_tokens.weight"] = torch.rand(TARGET_VOCAB, HIDDEN)
    assert draft.load(wide).has_own_embed_tokens


# Tied embeddings.


@every_family
def test_a_tied_draft_with_a_head_uses_the_head(make_draft, family):
    """Published reduced drafts say so, although their head is their own."""
    offsets = torch.arange(0, TARGET_VOCAB, 4) - torch.arange(256)
    draft = make_draft(family, draft_vocab=256, tie_word_embeddings=True)
    draft.tensors["d2t"] = offsets
    model = draft.load()
    assert model.has_own_lm_head
    assert torch.equal(model.lm_head.weight, draft.tensors["lm_head.weight"])


@every_family
def test_a_tied_draft_without_a_head_uses_its_embeddings(make_draft, family):
    draft = make_draft(family, head=False, tie_word_embeddings=True)
    own = draft.tensors["embed_tokens.weight"] = torch.rand(TARGET_VOCAB, HIDDEN)
    model = draft.load()
    assert model.has_own_lm_head
    assert torch.equal(model.lm_head.weight, own)
    draft.config["tie_word_embeddings"] = False
    assert not draft.load().has_own_lm_head


@every_family
def test_embeddings_of_another_size_are_no_head(make_draft, family):
    draft = make_draft(family, draft_vocab=256, head=False, tie_word_embeddings=True)
    draft.tensors["d2t"] = torch.zeros(256, dtype=torch.int64)
    draft.tensors["embed_tokens.weight"] = torch.rand(TARGET_VOCAB, HIDDEN)
    assert draft.refusal().startswith("lm_head.weight is missing: draft_vocab_size")

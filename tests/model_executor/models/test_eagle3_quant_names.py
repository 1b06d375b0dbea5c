# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""Which modules a draft's quantisation config means, by the names in its checkpoint.

vLLM asks for `layers.0.self_attn.q_proj` of a draft before a target of eight layers as
a part of `model.layers.8.self_attn.qkv_proj`. Configs are made by vLLM's own classes,
and the answers read through vLLM's own questions; no model is built.
"""

from types import SimpleNamespace

import pytest
from vllm.model_executor.layers.linear import LinearBase
from vllm.model_executor.layers.quantization import get_quantization_config
from vllm.model_executor.layers.quantization.compressed_tensors.utils import (
    find_matched_target,
    should_ignore_layer,
)
from vllm.model_executor.layers.quantization.quark import utils as quark
from vllm.model_executor.layers.quantization.utils.quant_utils import is_layer_skipped
from vllm.model_executor.models.eagle3_quant_formats import resolve_names
from vllm.model_executor.models.eagle3_quant_names import DraftModules

from tests.support.quantisation import compressed_tensors

GQA = {
    "qkv_proj": {"q_proj": "q", "k_proj": "k", "v_proj": "v"},
    "gate_up_proj": {"gate_proj": 0, "up_proj": 1},
}
MLA = {
    "gate_up_proj": {"gate_proj": 0, "up_proj": 1},
    "fused_qkv_a_proj": {"q_a_proj": 0, "kv_a_proj_with_mqa": 1},
}
FIRST = "model.layers.8"
SECOND = "model.layers.9"
NOWHERE = set()
SPELLINGS = ["layers.0", "midlayer", "model.layers.0", "model.midlayer", FIRST]


def served_names(stacked):
    """What vLLM asks for in a draft of two layers."""
    names = ["self_attn.o_proj", "mlp.gate_up_proj", "mlp.down_proj"]
    if stacked is GQA:
        names += ["self_attn.qkv_proj"]
    else:
        names += [f"self_attn.{n}" for n in ("fused_qkv_a_proj", "q_b_proj")]
        names += ["self_attn.kv_b_proj"]
    layers = [f"{layer}.{name}" for layer in (FIRST, SECOND) for name in names]
    return ["fc", "lm_head", *layers]


def resolved(keys, stacked=GQA, *, first_layer=8):
    """vLLM's config object from `keys`, with names as vLLM asks for them."""
    config = get_quantization_config(keys["quant_method"]).from_config(keys)
    config.packed_modules_mapping.update({k: list(v) for k, v in stacked.items()})
    draft = SimpleNamespace(num_layers=2, first_layer_id=first_layer)
    resolve_names(config, DraftModules(draft, stacked))
    return config


class Linear:
    """Of this name, as far as vLLM looks at classes."""


def left_out(config, stacked=GQA):
    """Modules that vLLM finds to be left out, asked as each format does."""
    fused, method = config.packed_modules_mapping, config.get_name()
    asked = {
        "compressed-tensors": lambda n: should_ignore_layer(n, config.ignore, fused),
        "fp8": lambda n: is_layer_skipped(n, config.ignored_layers, fused),
        "modelopt": lambda n: config.is_layer_excluded(n),
        "quark": lambda n: quark.should_ignore_layer(
            n, config.quant_config["exclude"], fused
        ),
    }[method]
    return {name for name in served_names(stacked) if asked(name)}


def fp8(names):
    return {
        "quant_method": "fp8",
        "activation_scheme": "dynamic",
        "ignored_layers": names,
    }


def modelopt(names):
    return {"quant_method": "modelopt", "quant_algo": "FP8", "ignore": names}


def quark_keys(names, layers=None):
    return {
        "quant_method": "quark",
        "export": {"kv_cache_group": [], "pack_method": "reorder"},
        "exclude": names,
        "global_quant_config": {"weight": {"dtype": "fp8_e4m3"}},
        "layer_quant_config": layers or {},
    }


def ignoring(names):
    return compressed_tensors("int8", ignore=names)


FORMATS = {
    "compressed-tensors": ignoring,
    "fp8": fp8,
    "modelopt": modelopt,
    "quark": quark_keys,
}
every_format = pytest.mark.parametrize("keys", FORMATS.values(), ids=FORMATS.keys())


@every_format
@pytest.mark.parametrize("layer", SPELLINGS)
def test_literal_names_of_a_layer(keys, layer):
    parts = [f"{layer}.self_attn.{name}_proj" for name in "qkv"]
    config = resolved(keys([f"{layer}.mlp.down_proj", *parts]))
    expected = {f"{FIRST}.mlp.down_proj", f"{FIRST}.self_attn.qkv_proj"}
    assert left_out(config) == expected


@every_format
@pytest.mark.parametrize("prefix", ["", "model."])
def test_literal_names_of_the_top_level(keys, prefix):
    config = resolved(keys([f"{prefix}fc", f"{prefix}lm_head"]))
    assert left_out(config) == {"fc", "lm_head"}


@every_format
def test_later_layers_are_told_apart_from_the_first(keys):
    config = resolved(keys(["layers.1.mlp.down_proj", "layers.0.self_attn.o_proj"]))
    assert left_out(config) == {f"{SECOND}.mlp.down_proj", f"{FIRST}.self_attn.o_proj"}


@every_format
def test_a_stacked_name_is_understood(keys):
    config = resolved(keys(["midlayer.mlp.gate_up_proj"]))
    assert left_out(config) == {f"{FIRST}.mlp.gate_up_proj"}


@every_format
def test_latent_attention(keys):
    names = ["q_a_proj", "kv_a_proj_with_mqa", "kv_b_proj"]
    config = resolved(keys([f"midlayer.self_attn.{n}" for n in names]), MLA)
    expected = {f"{FIRST}.self_attn.{n}" for n in ("fused_qkv_a_proj", "kv_b_proj")}
    assert left_out(config, MLA) == expected


PATTERNS = {
    # vLLM asks for `fc`; stock, and patterns made for it, say `model.fc`.
    "re:model.fc": {"fc"},
    "re:fc": {"fc"},
    "re:^fc$": {"fc"},
    "re:.*lm_head": {"lm_head"},
    r"re:midlayer\.mlp\.down_proj": {f"{FIRST}.mlp.down_proj"},
    r"re:^layers\.1\.self_attn\.o_proj": {f"{SECOND}.self_attn.o_proj"},
    r"re:model\.layers\.0\.self_attn\.[qkv]_proj": {f"{FIRST}.self_attn.qkv_proj"},
    "re:.*qkv_proj": {f"{FIRST}.self_attn.qkv_proj", f"{SECOND}.self_attn.qkv_proj"},
    "re:.*layers.1.*": {n for n in served_names(GQA) if n.startswith(SECOND)},
    # Of the target; a draft's layers are not numbered like that.
    r"re:.*layers\.(7|9)\..*": {n for n in served_names(GQA) if n.startswith(SECOND)},
    r"re:.*layers\.[2-7]\..*": NOWHERE,
    "re:down_proj": NOWHERE,  # patterns begin where names do
}


@pytest.mark.parametrize("keys", [ignoring, fp8, quark_keys])
@pytest.mark.parametrize("pattern", PATTERNS)
def test_patterns(keys, pattern):
    assert left_out(resolved(keys([pattern]))) == PATTERNS[pattern]


WILDCARDS = {
    "fc*": {"fc"},
    "*lm_head*": {"lm_head"},
    "midlayer.mlp*": {f"{FIRST}.mlp.gate_up_proj", f"{FIRST}.mlp.down_proj"},
    "layers.1.self_attn.*": {
        f"{SECOND}.self_attn.qkv_proj",
        f"{SECOND}.self_attn.o_proj",
    },
    "model.layers.0*": {n for n in served_names(GQA) if n.startswith(FIRST)},
    "self_attn": {n for n in served_names(GQA) if ".self_attn." in n},
    "attn": NOWHERE,  # no whole component of a name
}


@pytest.mark.parametrize("wildcard", WILDCARDS)
def test_wildcards_of_modelopt(wildcard):
    assert left_out(resolved(modelopt([wildcard]))) == WILDCARDS[wildcard]


@pytest.mark.parametrize("layer", SPELLINGS)
def test_formats_without_published_drafts_know_literal_names(layer):
    keys = {"quant_method": "awq", "bits": 4, "group_size": 32, "zero_point": True}
    names = [f"{layer}.mlp.down_proj", "model.fc"]
    config = resolved(keys | {"modules_to_not_convert": names})
    assert config.modules_to_not_convert == [f"{FIRST}.mlp.down_proj", "fc"]


def test_layer_ten_is_not_a_part_of_layer_one():
    """Names that begin alike: the target's layers come before the draft's."""
    config = resolved(modelopt(["layers.1"]), first_layer=10)
    asked = ["model.layers.10.mlp.down_proj", "model.layers.11.mlp.down_proj"]
    assert [config.is_layer_excluded(name) for name in asked] == [False, True]


def test_numbers_that_could_mean_two_layers_mean_the_drafts():
    """Before a target of one layer, `layers.1` is the draft's second layer."""
    names = ["model.layers.1.mlp.down_proj"]
    config = resolved(ignoring(names), first_layer=1)
    asked = ["model.layers.1.mlp.down_proj", "model.layers.2.mlp.down_proj"]
    assert [should_ignore_layer(n, config.ignore) for n in asked] == [False, True]


PARTIAL = {
    "q of q/k/v": (["layers.0.self_attn.q_proj"], GQA, "layers.0.self_attn.q_proj"),
    "gate of gate/up": (["midlayer.mlp.gate_proj"], GQA, "layers.0.mlp.gate_proj"),
    "q_a of latent attention": (
        ["layers.1.self_attn.q_a_proj"],
        MLA,
        "layers.1.self_attn.q_a_proj",
    ),
}


@every_format
@pytest.mark.parametrize("case", PARTIAL)
def test_a_part_of_a_stack_alone_is_refused(keys, case):
    names, stacked, named = PARTIAL[case]
    with pytest.raises(ValueError) as refused:
        resolved(keys(names), stacked)
    sentence = str(refused.value)
    assert f"treats {named} and " in sentence
    assert "vLLM computes them as one matrix" in sentence
    key = {
        ignoring: "ignore",
        fp8: "ignored_layers",
        modelopt: "exclude_modules",
        quark_keys: "exclude",
    }[keys]
    assert sentence.startswith(f"{key} in the draft's config")


def test_the_sentence_about_a_part_of_a_stack():
    with pytest.raises(ValueError) as refused:
        resolved(ignoring(["midlayer.self_attn.q_proj"]))
    assert str(refused.value) == (
        "ignore in the draft's config treats layers.0.self_attn.q_proj and "
        "layers.0.self_attn.k_proj, layers.0.self_attn.v_proj differently, but vLLM "
        "computes them as one matrix. Quantise all of layers.0.self_attn.q_proj, "
        "layers.0.self_attn.k_proj, layers.0.self_attn.v_proj alike, or none of them, "
        "and re-export the draft."
    )


# Targets of compressed-tensors: what is quantised, and how.


def targeting(*groups):
    """A config with a group of its own for each `(kind, targets)`."""
    first, *others = [compressed_tensors(kind, targets=t) for kind, t in groups]
    for index, other in enumerate(others, 1):
        first["config_groups"][f"group_{index}"] = other["config_groups"]["group_0"]
    return first


def bits(config, stacked=GQA):
    """Bits of a weight by served name, where vLLM finds a scheme."""
    found = {}
    for name in served_names(stacked):
        if should_ignore_layer(name, config.ignore, config.packed_modules_mapping):
            continue
        target = find_matched_target(
            name, Linear(), config.target_scheme_map, config.packed_modules_mapping
        )
        if target is not None:
            found[name] = config.target_scheme_map[target]["weights"].num_bits
    return found


@pytest.mark.parametrize("layer", SPELLINGS)
@pytest.mark.parametrize("form", ["{}.mlp.down_proj", r"re:{}\.mlp\.down_proj$"])
def test_targets_by_name_and_by_pattern(layer, form):
    config = resolved(targeting(("int8", [form.format(layer)])))
    assert bits(config) == {f"{FIRST}.mlp.down_proj": 8}


@pytest.mark.parametrize("target", ["fc", "model.fc", "re:.*fc", "re:model.fc"])
def test_targets_of_the_top_level(target):
    assert bits(resolved(targeting(("int8", [target])))) == {"fc": 8}


def test_all_parts_of_a_stack_as_targets():
    parts = [f"midlayer.self_attn.{name}_proj" for name in "qkv"]
    config = resolved(targeting(("int8", parts)))
    assert bits(config) == {f"{FIRST}.self_attn.qkv_proj": 8}


def test_names_come_before_classes_and_ignored_before_both():
    keys = targeting(("int8", ["Linear"]), ("int4", ["midlayer.mlp.down_proj"]))
    keys["ignore"] = ["re:.*self_attn.*", "fc", "lm_head"]
    found = bits(resolved(keys))
    assert found == {
        f"{FIRST}.mlp.down_proj": 4,
        f"{FIRST}.mlp.gate_up_proj": 8,
        f"{SECOND}.mlp.down_proj": 8,
        f"{SECOND}.mlp.gate_up_proj": 8,
    }


def test_the_first_of_two_patterns_counts():
    keys = targeting(("int4", ["re:.*down_proj"]), ("int8", ["re:.*"]))
    found = bits(resolved(keys))
    assert found.pop(f"{FIRST}.mlp.down_proj") == 4
    assert found.pop(f"{SECOND}.mlp.down_proj") == 4
    assert set(found.values()) == {8} and len(found) == len(served_names(GQA)) - 2


def test_parts_of_a_stack_in_two_schemes_are_refused():
    """Stock takes the first part's scheme for all."""
    gate, up = "midlayer.mlp.gate_proj", "midlayer.mlp.up_proj"
    for groups in (
        [("int8", [gate]), ("int4", [up])],
        [("int4", [gate]), ("int8", ["Linear"])],
        [("int8", [gate])],
    ):
        with pytest.raises(ValueError, match=r"layers\.0\.mlp\.gate_proj and layers"):
            resolved(targeting(*groups))


def test_parts_of_a_stack_may_have_one_scheme_under_two_names():
    keys = targeting(("int8", ["midlayer.mlp.gate_proj"]), ("int8", ["Linear"]))
    assert bits(resolved(keys))[f"{FIRST}.mlp.gate_up_proj"] == 8


def test_layers_of_quark_with_a_config_of_their_own():
    own = {"weight": {"dtype": "int8"}}
    layers = {"*.down_proj": own, "midlayer.self_attn.o_proj": own}
    config = resolved(quark_keys(["fc"], layers))
    asked = {
        n: config._find_matched_config(n, LinearBase) == own for n in served_names(GQA)
    }
    assert {name for name, has in asked.items() if has} == {
        f"{FIRST}.mlp.down_proj",
        f"{SECOND}.mlp.down_proj",
        f"{FIRST}.self_attn.o_proj",
    }


MALFORMED = {
    "no list": ("lm_head", "ignored_layers in the draft's quantization_config is "),
    "no text": (["lm_head", 3], "ignored_layers in the draft's quantization_config h"),
    "no pattern": (["re:*.fc"], "The pattern '*.fc' in the draft's quantization_co"),
    "a pattern without end": (["re:(.|..|...)+[0-9]$"], "The pattern '(.|..|...)+["),
}


@pytest.mark.parametrize("case", MALFORMED)
def test_entries_that_cannot_be_read_are_refused(case, monkeypatch):
    monkeypatch.setattr(
        "vllm.model_executor.models.eagle3_quant_formats._SECONDS_PER_MATCH", 0.05
    )
    entries, start = MALFORMED[case]
    with pytest.raises(ValueError) as refused:
        resolved(fp8(entries))
    assert str(refused.value).startswith(start)

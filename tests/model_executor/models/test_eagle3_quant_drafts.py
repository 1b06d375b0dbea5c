# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""Quantised drafts in the layouts that exporters write, loaded.

What every CPU can run is compared with the matrices that the checkpoint stands for. Of
the rest, kernels aside, all tensors must arrive, and at the modules that the config
means. Layouts: compressed-tensors int8, fp8 and packed integers, ModelOpt, Quark, fp8.
"""

import json

import pytest
import torch
from vllm.distributed import get_tp_group
from vllm.model_executor.models.registry import ModelRegistry

from tests.support.checkpoints import FAMILIES, HIDDEN, TARGET_VOCAB, target_config
from tests.support.drafts import engine_config
from tests.support.quantisation import (
    compressed_tensors,
    matrices,
    no_kernels,
    quantised_modules,
    to_fp8,
    to_int8,
    to_packed,
)
from tests.support.stock import CLASSES, build

every_family = pytest.mark.parametrize("family", FAMILIES)

BF16 = {"dtype": "bfloat16"}
CACHE_SCHEME = {
    "num_bits": 8,
    "type": "float",
    "strategy": "tensor",
    "symmetric": True,
    "dynamic": False,
}
FUSED = {
    "self_attn.qkv_proj": ["q_proj", "k_proj", "v_proj"],
    "self_attn.fused_qkv_a_proj": ["q_a_proj", "kv_a_proj_with_mqa"],
    "mlp.gate_up_proj": ["gate_proj", "up_proj"],
}


def built(draft, target=None, *, device="cpu"):
    """The draft with its tensors in place, before kernels get hold of them."""
    tensors, draft.tensors = draft.tensors, {}
    config = engine_config(draft.write(), target, engine=BF16)
    draft.tensors = tensors
    name = CLASSES[draft.config["model_type"].partition("_")[0]][1]
    model_class = ModelRegistry.models[name].load_model_cls()
    with no_kernels(), torch.device(device):
        on_device = {n: t.to(device) for n, t in tensors.items()}
        return build(model_class, config, on_device)


def refused(draft, target=None):
    """The sentence of the refusal; the same where tensors have no values."""
    with pytest.raises(ValueError) as real:
        built(draft, target)
    with pytest.raises(ValueError) as meta:
        built(draft, target, device="meta")
    assert str(meta.value) == str(real.value)
    return str(real.value)


def module_names(family, *, without=()):
    """Matrices of a draft as vLLM stacks them."""
    names = {"fc", "lm_head", "layers.0.self_attn.o_proj", "layers.0.mlp.down_proj"}
    names |= {"layers.0.mlp.gate_up_proj"}
    if family == "deepseek":
        latent = ("fused_qkv_a_proj", "q_b_proj", "kv_b_proj")
        names |= {f"layers.0.self_attn.{name}" for name in latent}
    else:
        names |= {"layers.0.self_attn.qkv_proj"}
    return {name for name in names if not name.endswith(tuple(without))}


def parts_of(module):
    """Checkpoint names, `midlayer.*`, of a module as vLLM stacks it."""
    name = module.replace("layers.0.", "midlayer.")
    for whole, parts in FUSED.items():
        if name.endswith(whole):
            parent = name.removesuffix(whole.rpartition(".")[2])
            return [parent + part for part in parts]
    return [name]


def check_arrived(model, draft):
    """Weights and their scales hold exactly what the checkpoint does, in order."""
    for name in quantised_modules(model):
        path = name if name == "lm_head" else f"model.{name}"
        module = model.get_submodule(path)
        parts = parts_of(name)
        for leaf in ("weight", "weight_packed", "weight_scale", "input_scale"):
            found = [draft.tensors.get(f"{part}.{leaf}") for part in parts]
            if found[0] is None:
                continue
            parameter = getattr(module, leaf).detach().flatten()
            expected = torch.cat([t.to(parameter.dtype).flatten() for t in found])
            arrived = parameter[: len(expected)]  # heads are padded
            assert torch.equal(arrived.float(), expected.float()), f"{name}.{leaf}"


def relative_error(found, expected):
    return ((found.float() - expected).norm() / expected.norm()).item()


@every_family
def test_int8_computes_like_the_matrices_it_stands_for(make_draft, family):
    """All matrices, the head among them: to its exporter it is a linear layer."""
    config = compressed_tensors("int8")
    draft = make_draft(family, quantization_config=config)
    meant = to_int8(draft.tensors, matrices(draft.tensors))
    model = draft.load(engine=BF16)
    assert quantised_modules(model) == module_names(family)
    sizes = {"fc": 3 * HIDDEN, "lm_head": HIDDEN}
    for name in module_names(family, without=["kv_b_proj"]):
        matrix = torch.cat([meant[part] for part in parts_of(name)])
        states = torch.randn(4, sizes.get(name, matrix.shape[1])).bfloat16()
        if name == "lm_head":
            result = model.compute_logits(states)
            assert result.shape == (4, TARGET_VOCAB)
        elif name == "fc":
            result = model.combine_hidden_states(states)
        else:
            result = model.get_submodule(f"model.{name}")(states)[0]
        # Activations are rounded to 8 bits as well.
        assert relative_error(result, states.float() @ matrix.T) < 0.02, name


@every_family
def test_a_packed_head_computes_like_the_matrix_it_stands_for(make_draft, family):
    config = compressed_tensors("int4", targets=["lm_head"])
    draft = make_draft(family, draft_vocab=256, quantization_config=config)
    draft.tensors["d2t"] = torch.arange(0, TARGET_VOCAB, 4) - torch.arange(256)
    meant = to_packed(draft.tensors, ["lm_head"], bits=4, group=32)
    model = draft.load(engine=BF16)
    assert quantised_modules(model) == {"lm_head"}
    states = torch.randn(4, HIDDEN).bfloat16()
    logits = model.compute_logits(states)
    assert logits.shape == (4, TARGET_VOCAB)
    assert logits.isfinite().sum() == 4 * 256
    expected = states.float() @ meant["lm_head"].T
    assert relative_error(logits[:, ::4], expected) < 0.02
    assert torch.equal(model.get_top_tokens(states), logits.argmax(-1))


@every_family
@pytest.mark.parametrize("targets", [["Linear"], ["lm_head"], ["re:.*lm_head$"]])
def test_packed_int8_heads(make_draft, family, targets):
    """With `Linear`, only the tensors tell that the head is meant."""
    everything_else = ["re:.*(midlayer|fc).*"]
    config = compressed_tensors("int8-packed", targets=targets, ignore=everything_else)
    draft = make_draft(family, quantization_config=config)
    to_packed(draft.tensors, ["lm_head"], bits=8, group=32)
    model = built(draft)
    assert quantised_modules(model) == {"lm_head"}
    assert model.has_own_lm_head
    check_arrived(model, draft)


@every_family
def test_fp8_of_compressed_tensors_with_scales_of_the_cache(make_draft, family, caplog):
    config = compressed_tensors(
        "fp8", ignore=["lm_head", "re:.*kv_b_proj"], kv_cache_scheme=CACHE_SCHEME
    )
    draft = make_draft(family, quantization_config=config)
    to_fp8(draft.tensors, matrices(draft.tensors, "lm_head", "kv_b_proj"), rows=True)
    scales = {"k_scale": 0.5, "v_scale": 0.25}
    for leaf, value in scales.items():
        draft.tensors[f"midlayer.self_attn.{leaf}"] = torch.tensor([value])
    model = built(draft)
    expected = module_names(family, without=["lm_head", "kv_b_proj"])
    assert quantised_modules(model) == expected
    check_arrived(model, draft)
    if family == "deepseek":  # vLLM knows no such scales of latent attention
        assert "does not use: midlayer.self_attn.k_scale" in caplog.text
        return
    attention = model.model.layers[0].self_attn.attn
    assert {leaf: getattr(attention, leaf).item() for leaf in scales} == scales
    # The cache is the engine's; vLLM's attention would have made it fp8 for all.
    assert attention.kv_cache_dtype == "auto"
    assert "kv_cache_scheme in the draft's quantization_config" in caplog.text


def test_scales_per_head_of_a_cache_that_is_not_quantised(make_draft, caplog):
    scheme = CACHE_SCHEME | {"strategy": "attn_head"}
    config = compressed_tensors("fp8", ignore=["lm_head"], kv_cache_scheme=scheme)
    draft = make_draft("llama", quantization_config=config)
    to_fp8(draft.tensors, matrices(draft.tensors, "lm_head"), rows=True)
    for leaf in ("k_scale", "v_scale"):
        draft.tensors[f"midlayer.self_attn.{leaf}"] = torch.full((2, 1, 1), 0.5)
    check_arrived(built(draft), draft)
    assert "does not use: midlayer.self_attn.k_scale" in caplog.text


MODELOPT = {"producer": {"name": "modelopt", "version": "0.47.0"}}


@every_family
@pytest.mark.parametrize("own_file", [False, True])
def test_fp8_of_modelopt(make_draft, family, own_file, caplog):
    """Its settings in config.json, or in hf_quant_config.json alone."""
    left_out = ["midlayer.self_attn.kv_b_proj*"]
    keys = MODELOPT | {
        "quant_method": "modelopt",
        "quant_algo": "FP8",
        "ignore": left_out,
    }
    draft = make_draft(family, **({} if own_file else {"quantization_config": keys}))
    if own_file:
        keys = {"quant_algo": "FP8", "kv_cache_quant_algo": "FP8"}
        keys = MODELOPT | {"quantization": keys | {"exclude_modules": left_out}}
        file = draft.write() / "hf_quant_config.json"
        file.write_text(json.dumps(keys))
    # The head is the target's, copied in after the draft was quantised.
    names = matrices(draft.tensors, "lm_head", "kv_b_proj")
    to_fp8(draft.tensors, names, input_scale=True)
    for part in "kv":
        scale = torch.tensor(0.5)
        draft.tensors[f"midlayer.self_attn.{part}_proj.{part}_scale"] = scale
    model = built(draft)
    expected = module_names(family, without=["lm_head", "kv_b_proj"])
    assert quantised_modules(model) == expected
    check_arrived(model, draft)
    head = draft.tensors["lm_head.weight"].bfloat16()
    assert torch.equal(model.lm_head.weight, head)
    assert "lm_head.weight of the draft is float32 without a scale" in caplog.text
    parameters = dict(model.named_parameters())
    scales = [n for n in parameters if n.endswith(("attn.k_scale", "attn.v_scale"))]
    assert [parameters[name].item() for name in scales] == [0.5, 0.5]


@every_family
def test_a_quantised_head_of_modelopt(make_draft, family):
    keys = {"quant_method": "modelopt", "quant_algo": "FP8", "ignore": ["*attn*"]}
    draft = make_draft(family, quantization_config=keys)
    to_fp8(
        draft.tensors,
        [n for n in matrices(draft.tensors) if "self_attn" not in n],
        input_scale=True,
    )
    model = built(draft)
    outside = {n for n in module_names(family) if "self_attn" not in n}
    assert quantised_modules(model) == outside
    check_arrived(model, draft)


@every_family
def test_fp8_of_quark_without_fc_and_head(make_draft, family):
    """As amd/Kimi-K2.5-Eagle3-FP8: a scale for each row, `[rows]`."""
    numbers = {"dtype": "fp8_e4m3", "qscheme": "per_channel", "symmetric": True}
    keys = {
        "quant_method": "quark",
        "export": {"kv_cache_group": [], "pack_method": "reorder"},
        "exclude": ["fc", "lm_head", "midlayer.self_attn.kv_b_proj"],
        "global_quant_config": {
            "weight": numbers | {"is_dynamic": False, "ch_axis": 0},
            "input_tensors": numbers | {"is_dynamic": True, "ch_axis": 1},
            "output_tensors": None,
            "bias": None,
        },
        "layer_quant_config": {},
    }
    draft = make_draft(family, quantization_config=keys)
    names = matrices(draft.tensors, "lm_head", "fc", "kv_b_proj")
    to_fp8(draft.tensors, names, rows=True, shape=(-1,))
    model = built(draft)
    expected = module_names(family, without=["lm_head", "fc", "kv_b_proj"])
    assert quantised_modules(model) == expected
    check_arrived(model, draft)


@every_family
def test_fp8_as_deepseek_and_autofp8_write_it(make_draft, family):
    keys = {
        "quant_method": "fp8",
        "activation_scheme": "dynamic",
        "ignored_layers": ["lm_head", "midlayer.self_attn.kv_b_proj"],
    }
    draft = make_draft(family, quantization_config=keys)
    to_fp8(draft.tensors, matrices(draft.tensors, "lm_head", "kv_b_proj"))
    model = built(draft)
    expected = module_names(family, without=["lm_head", "kv_b_proj"])
    assert quantised_modules(model) == expected
    check_arrived(model, draft)


TARGETS = {
    "int8": compressed_tensors("int8", ignore=["lm_head"]),
    "fp8": {"quant_method": "fp8", "activation_scheme": "dynamic"},
}


@every_family
@pytest.mark.parametrize("kind", TARGETS)
def test_a_quantised_target_leaves_no_trace(make_draft, family, kind):
    target = target_config(quantization_config=TARGETS[kind])
    model = built(make_draft(family), target)
    assert model.quant_config is None and not quantised_modules(model)


@every_family
def test_target_and_draft_are_quantised_each_by_its_own(make_draft, family):
    config = compressed_tensors("int8", targets=["fc"])
    draft = make_draft(family, quantization_config=config)
    to_int8(draft.tensors, ["fc"])
    model = built(draft, target_config(quantization_config=TARGETS["fp8"]))
    assert quantised_modules(model) == {"fc"}
    check_arrived(model, draft)


EMPTY = {
    "no keys": {"quantization_config": {}},
    "null": {"quantization_config": None},
    "no method": {"quantization_config": {"quant_method": ""}},
    "null method": {"quantization_config": {"quant_method": None}},
    "modelopt without algorithm": {
        "quantization_config": MODELOPT | {"quant_method": "modelopt", "ignore": []}
    },
    "null groups": {
        "quantization_config": compressed_tensors("int8") | {"config_groups": None}
    },
    "no groups": {
        "quantization_config": compressed_tensors("int8") | {"config_groups": {}}
    },
}


@every_family
@pytest.mark.parametrize("case", EMPTY)
def test_configs_that_quantise_nothing(make_draft, family, case, caplog):
    model = built(make_draft(family, **EMPTY[case]))
    assert model.quant_config is None and not quantised_modules(model)
    # vLLM itself passes over a config without a method.
    has_method = "quant_method" in (EMPTY[case]["quantization_config"] or {})
    has_method = has_method and not case.endswith(" method")
    assert ("names no " in caplog.text) == has_method


OWN_FILES = {
    "no keys": {},
    "null": MODELOPT | {"quantization": None},
    "null producer": {"producer": None, "quantization": {"quant_algo": None}},
    "no algorithm": MODELOPT
    | {
        "quantization": {
            "quant_algo": None,
            "kv_cache_quant_algo": None,
            "exclude_modules": ["lm_head"],
        }
    },
}


@every_family
@pytest.mark.parametrize("case", OWN_FILES)
def test_files_of_modelopt_that_quantise_nothing(make_draft, family, case):
    """As nvidia/Qwen3-235B-A22B-Eagle3 has one."""
    draft = make_draft(family)
    file = draft.write() / "hf_quant_config.json"
    file.write_text(json.dumps(OWN_FILES[case]))
    model = built(draft)
    assert model.quant_config is None and not quantised_modules(model)


@every_family
def test_a_quantised_draft_loads_where_tensors_have_no_values(make_draft, family):
    """Names, dtypes and shapes decide; nothing asks what a tensor holds."""
    draft = make_draft(family, quantization_config=compressed_tensors("int8"))
    to_int8(draft.tensors, matrices(draft.tensors))
    model = built(draft, device="meta")
    assert quantised_modules(model) == module_names(family)
    assert all(parameter.is_meta for parameter in model.parameters())


@every_family
def test_each_rank_of_tensor_parallelism_takes_its_share(
    make_draft, family, monkeypatch
):
    """The checkpoint's shapes are checked as a whole, whatever a rank keeps of them."""
    draft = make_draft(family, quantization_config=compressed_tensors("int8"))
    to_int8(draft.tensors, matrices(draft.tensors))
    built(draft)  # makes the process group
    monkeypatch.setattr(get_tp_group(), "world_size", 2)
    for rank in (0, 1):
        monkeypatch.setattr(get_tp_group(), "rank_in_group", rank)
        model = built(draft)
        for name, dimension in {"o_proj": 1, "down_proj": 1, "lm_head": 0}.items():
            (path,) = [n for n in quantised_modules(model) if n.endswith(name)]
            (part,) = parts_of(path)
            module = model.lm_head if name == "lm_head" else None
            module = module or model.get_submodule(f"model.{path}")
            whole = draft.tensors[f"{part}.weight"]
            assert torch.equal(module.weight, whole.chunk(2, dimension)[rank]), name
        parts = ["midlayer.mlp.gate_proj.weight", "midlayer.mlp.up_proj.weight"]
        shares = [draft.tensors[part].chunk(2)[rank] for part in parts]
        stacked = model.model.layers[0].mlp.gate_up_proj.weight
        assert torch.equal(stacked, torch.cat(shares))

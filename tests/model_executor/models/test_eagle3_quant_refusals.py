# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""What a draft's quantisation config and its tensors may not say of each other.

vLLM's loaders cast what they get, with at most a warning, and cut off what is too much:
weights between -1 and 1 become zeros in an int8 parameter. Every refusal is the same
for tensors that have no values, as `test_eagle3_quant_drafts.refused` checks.
"""

import pytest
import torch

from tests.support.checkpoints import FAMILIES, HIDDEN
from tests.support.quantisation import (
    compressed_tensors,
    matrices,
    to_fp8,
    to_int8,
    to_packed,
)

from .test_eagle3_quant_drafts import BF16, refused

every_family = pytest.mark.parametrize("family", FAMILIES)
gqa_family = pytest.mark.parametrize("family", ["llama", "qwen3"])
DOWN = "midlayer.mlp.down_proj"


def int8_draft(make_draft, family="llama", **keys):
    draft = make_draft(family, quantization_config=compressed_tensors("int8", **keys))
    to_int8(draft.tensors, matrices(draft.tensors, *keys.get("ignore", ())))
    return draft


@every_family
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "uint8"])
def test_another_tensor_where_int8_is_due(make_draft, family, dtype):
    draft = int8_draft(make_draft, family)
    weight = draft.tensors[f"{DOWN}.weight"]
    draft.tensors[f"{DOWN}.weight"] = weight.to(getattr(torch, dtype))
    assert refused(draft) == (
        f"{DOWN}.weight is {dtype}, but the draft's quantization_config asks for int8. "
        f"Re-export the draft, or list {DOWN} in ignore if it was not quantised."
    )


@every_family
def test_a_plain_draft_with_the_config_of_a_quantised_one(make_draft, family):
    draft = make_draft(family, quantization_config=compressed_tensors("int8"))
    assert refused(draft).startswith(
        "fc.weight is float32, but the draft's quantization_config asks for int8."
    )


@every_family
def test_a_float_matrix_where_fp8_is_due(make_draft, family):
    """The scale alone would stay what no scale can be."""
    keys = {"quant_method": "modelopt", "quant_algo": "FP8", "ignore": ["lm_head"]}
    draft = make_draft(family, quantization_config=keys)
    names = matrices(draft.tensors, "lm_head", "fc", "kv_b_proj")
    to_fp8(draft.tensors, names, input_scale=True)
    assert refused(draft) == (
        "fc.weight is float32, but the draft's quantization_config asks for "
        "float8_e4m3fn. Re-export the draft, or list fc in exclude_modules if it was "
        "not quantised."
    )


@every_family
@pytest.mark.parametrize("kind", ["int8", "fp8"])
def test_a_quantised_draft_without_a_config(make_draft, family, kind):
    draft = make_draft(family)
    quantise, dtype = {
        "int8": (to_int8, "int8"),
        "fp8": (to_fp8, "float8_e4m3fn"),
    }[kind]
    quantise(draft.tensors, [DOWN])
    assert refused(draft) == (
        f"{DOWN}.weight is {dtype}, but the draft's config has no quantization_config, "
        "so it must be in floating point (float32, bfloat16, float16, float64). Add "
        "the quantization_config that the draft was quantised with, or re-export it."
    )


@every_family
@pytest.mark.parametrize("module", ["fc", "lm_head", "midlayer.self_attn.o_proj"])
def test_a_quantised_matrix_that_the_config_leaves_out(make_draft, family, module):
    draft = int8_draft(make_draft, family, ignore=[module])
    to_int8(draft.tensors, [module])
    assert refused(draft) == (
        f"{module}.weight is int8, but the draft's quantization_config leaves {module} "
        "in floating point. Correct ignore, or re-export the draft."
    )


@every_family
def test_a_float_head_that_the_config_names(make_draft, family):
    config = compressed_tensors("int8", targets=["lm_head"])
    draft = make_draft(family, quantization_config=config)
    assert refused(draft).startswith(
        "lm_head.weight is float32, but the draft's quantization_config asks for int8."
    )


@every_family
@pytest.mark.parametrize("module", ["fc", "lm_head", DOWN, "midlayer.mlp.up_proj"])
def test_a_missing_scale(make_draft, family, module):
    draft = int8_draft(make_draft, family)
    del draft.tensors[f"{module}.weight_scale"]
    assert refused(draft).startswith(
        f"The draft checkpoint lacks {module}.weight_scale. "
    )


@every_family
def test_a_missing_scale_of_a_packed_head(make_draft, family):
    config = compressed_tensors("int8-packed", targets=["lm_head"])
    draft = make_draft(family, quantization_config=config)
    to_packed(draft.tensors, ["lm_head"], bits=8, group=32)
    del draft.tensors["lm_head.weight_scale"]
    assert refused(draft).startswith("The draft checkpoint lacks lm_head.weight_scale.")


@every_family
@pytest.mark.parametrize("dtype", ["int8", "int16", "int64"])
def test_packed_values_in_another_integer(make_draft, family, dtype):
    """A cast would keep each number, and the values packed in it would be lost."""
    config = compressed_tensors("int4", targets=["fc"])
    draft = make_draft(family, quantization_config=config)
    to_packed(draft.tensors, ["fc"], bits=4, group=32)
    packed = draft.tensors["fc.weight_packed"]
    draft.tensors["fc.weight_packed"] = packed.to(getattr(torch, dtype))
    assert refused(draft).startswith(
        f"fc.weight_packed is {dtype}, but the draft's quantization_config asks for "
        "int32."
    )


def test_a_scale_that_is_no_number_to_scale_by(make_draft):
    draft = int8_draft(make_draft)
    draft.tensors[f"{DOWN}.weight_scale"] = torch.ones(HIDDEN, 1, dtype=torch.int32)
    assert refused(draft) == (
        f"{DOWN}.weight_scale is int32, but this scale must be in floating point. "
        "Re-export the draft."
    )


# What vLLM's loaders would cut off without a word, or find no words for.
SHAPES = {
    "rows too many": ("weight", (HIDDEN + 8, 256), (HIDDEN, 256)),
    "columns too many": ("weight", (HIDDEN, 512), (HIDDEN, 256)),
    "rows too few": ("weight", (HIDDEN - 8, 256), (HIDDEN, 256)),
    "one scale for all rows": ("weight_scale", (1, 1), (HIDDEN, 1)),
    "scales too many": ("weight_scale", (HIDDEN + 8, 1), (HIDDEN, 1)),
    "scales for groups": ("weight_scale", (HIDDEN, 8), (HIDDEN, 1)),
}


@pytest.mark.parametrize("case", SHAPES)
def test_a_quantised_tensor_of_another_shape(make_draft, case):
    leaf, found, due = SHAPES[case]
    draft = int8_draft(make_draft)
    tensor = draft.tensors[f"{DOWN}.{leaf}"]
    draft.tensors[f"{DOWN}.{leaf}"] = torch.ones(found, dtype=tensor.dtype)
    assert refused(draft).startswith(
        f"{DOWN}.{leaf} has shape {list(found)}, but the draft's config asks for "
        f"{list(due)}."
    )


@every_family
@pytest.mark.parametrize("module", ["midlayer.mlp.gate_proj", "attention"])
def test_a_part_of_a_stack_of_another_shape(make_draft, family, module):
    if module == "attention":
        last = "q_a_proj" if family == "deepseek" else "k_proj"
        module = f"midlayer.self_attn.{last}"
    draft = int8_draft(make_draft, family)
    weight = draft.tensors[f"{module}.weight"]
    rows, columns = weight.shape
    draft.tensors[f"{module}.weight"] = weight.new_ones(rows + 4, columns)
    assert refused(draft).startswith(
        f"{module}.weight has shape {[rows + 4, columns]}, but the draft's config asks "
        f"for {[rows, columns]}."
    )


def test_rows_of_a_packed_head_against_the_vocabulary(make_draft):
    config = compressed_tensors("int8-packed", targets=["lm_head"])
    draft = make_draft("llama", draft_vocab=256, quantization_config=config)
    draft.tensors["d2t"] = torch.zeros(256, dtype=torch.int64)
    draft.tensors["lm_head.weight"] = torch.randn(250, HIDDEN)
    to_packed(draft.tensors, ["lm_head"], bits=8, group=32)
    sentence = refused(draft)
    assert sentence.startswith("lm_head.weight_packed has 250 rows")
    assert "256" in sentence


@gqa_family
@pytest.mark.parametrize("half", ["k", "v"])
def test_half_of_the_scales_of_a_cache(make_draft, family, half):
    """vLLM would take 1 for the other half."""
    draft = int8_draft(make_draft, family)
    name = f"midlayer.self_attn.{half}_scale"
    draft.tensors[name] = torch.tensor([0.5])
    other = {"k": "v_scale", "v": "k_scale"}[half]
    assert refused(draft) == (
        f"The draft checkpoint holds {name}, but no {other} for that layer. Re-export "
        "the draft with both, or with neither."
    )


@every_family
def test_an_update_of_what_has_been_converted(make_draft, family):
    """It would fit a square matrix, and mean its transpose."""
    draft = int8_draft(make_draft, family)
    model = draft.load(engine=BF16)
    norm = torch.full((HIDDEN,), 2.0)
    for module in ("fc", "lm_head", "midlayer.mlp.up_proj"):
        for leaf in ("weight", "weight_scale"):
            name = f"{module}.{leaf}"
            with pytest.raises(ValueError) as refusal:
                model.load_weights([("norm.weight", norm), (name, draft.tensors[name])])
            assert str(refusal.value) == (
                f"{name} cannot be updated: vLLM has converted this quantised module "
                "for its kernels. Restart the engine with the new draft checkpoint."
            )
    assert not torch.equal(model.model.norm.weight.float(), norm)
    assert model.load_weights([("norm.weight", norm)]) == {"model.norm.weight"}
    assert torch.equal(model.model.norm.weight.float(), norm)

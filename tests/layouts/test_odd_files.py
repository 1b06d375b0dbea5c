# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""Files as exporters really write them, each in every family."""

import pytest
import torch

from .small import every_family, serve, small


@every_family
@pytest.mark.parametrize("files", ["bin", "shards"])
def test_other_files_than_one_of_safetensors(family, files, tmp_path):
    serve(small(family, {"files": files}), tmp_path)


@every_family
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16], ids=str)
def test_other_dtypes_than_bfloat16(family, dtype, tmp_path):
    serve(small(family, {"dtype": dtype}), tmp_path)


@every_family
def test_several_dtypes_in_one_file(family, tmp_path):
    draft = small(family, {"embed": True})
    draft.tensors["lm_head.weight"] = draft.tensors["lm_head.weight"].half()
    draft.tensors["norm.weight"] = draft.tensors["norm.weight"].double()
    serve(draft, tmp_path)

# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""A draft's config file is looked at as a whole before vLLM reads it.

What a size or a rope parameter may be is tested beside the draft models.
"""

import json

import pytest

from tests.check.conftest import check_folders, errors
from tests.support.checkpoints import (
    DraftShape,
    draft_config,
    draft_tensors,
    target_config,
    write_checkpoint,
)
from tests.support.drafts import engine_config
from vllm_eagle3 import config_file

HUGE = 2**40
METHOD_7 = (
    "quant_method is 7 in the draft's quantization_config. It must be the name of a "
    "method, or be absent."
)


def refusal(config):
    with pytest.raises(ValueError) as refused:
        config_file.check_file(config)
    return str(refused.value)


@pytest.mark.parametrize("value", ["fp8", ["fp8"], 8])
def test_a_quantisation_config_is_an_object(value):
    assert refusal({"quantization_config": value}) == (
        f"quantization_config is {value!r} in the draft's config. It must be an object "
        "with a quant_method, or be absent."
    )
    config_file.check_file({"quantization_config": None})
    config_file.check_file({"quantization_config": {"quant_method": "fp8"}})


def test_a_quantisation_method_is_a_name():
    assert refusal({"quantization_config": {"quant_method": 7}}) == METHOD_7
    config_file.check_file({"quantization_config": {"quant_method": None}})
    config_file.check_file({"quantization_config": {}})


@pytest.mark.parametrize("elsewhere", [False, True])
def test_a_server_and_the_check_say_so(tmp_path, elsewhere):
    """Of a method in the file that older ModelOpt writes, too."""
    keys = {"quant_method": 7}
    config = draft_config("llama", quantization_config=... if elsewhere else keys)
    tensors = draft_tensors(DraftShape())
    folder = write_checkpoint(tmp_path / "draft", config, tensors)
    if elsewhere:
        (folder / "hf_quant_config.json").write_text(json.dumps(keys))
    with pytest.raises(ValueError) as refused:
        engine_config(folder)
    assert METHOD_7 in str(refused.value)
    target = write_checkpoint(tmp_path / "target", target_config(), {})
    assert METHOD_7 in errors(check_folders(folder, target))[0]


def test_a_config_counts_before_the_other_file(tmp_path):
    config = draft_config("llama", quantization_config={"quant_method": "fp8"})
    folder = write_checkpoint(tmp_path, config, {})
    (folder / "hf_quant_config.json").write_text('{"quant_method": 7}')
    config_file.check({"method": "eagle3", "model": str(folder)})


@pytest.mark.parametrize(
    ("given", "is_read"),
    [
        ({"method": "eagle3"}, True),
        ({}, True),  # vLLM goes by the name of the folder then
        ({"method": "eagle"}, False),
    ],
)
def test_the_file_is_read_for_drafts_of_this_method(tmp_path, given, is_read):
    config = draft_config("llama", hidden_size=HUGE)
    given |= {"model": str(write_checkpoint(tmp_path / "my-Eagle3", config, {}))}
    if not is_read:
        config_file.check(given)
        return
    with pytest.raises(ValueError, match=f"^hidden_size {HUGE} and"):
        config_file.check(given)


@pytest.mark.parametrize("content", ["[]", "{", None])
def test_a_file_that_cannot_be_read_is_left_to_vllm(tmp_path, content):
    if content is not None:
        (tmp_path / "config.json").write_text(content)
    config_file.check({"method": "eagle3", "model": str(tmp_path)})
    config_file.check({"method": "eagle3"})

# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""Trees that have moved, and mistakes of users: one sentence, nothing written."""

import os

import pytest

LLAMA = "vllm.model_executor.models.llama_eagle3"


def doctor(path, before, after):
    text = path.read_text()
    assert text.count(before) == 1
    path.write_text(text.replace(before, after))


def test_a_changed_method_is_named_and_no_other(tree, refusal):
    doctor(
        tree.model("llama_eagle3"),
        "        return self.model.embed_input_ids(input_ids)\n",
        "        return 2 * self.model.embed_input_ids(input_ids)\n",
    )
    said = refusal()
    assert f"{LLAMA}:Eagle3LlamaForCausalLM.embed_input_ids: " in said
    assert said.count("models.") == 1
    assert said.endswith("Nothing was written\n")


def test_a_renamed_method_is_named(tree, refusal):
    doctor(
        tree.model("qwen3_eagle3"),
        "    def combine_hidden_states(\n",
        "    def combine_features(\n",
    )
    assert "Eagle3Qwen3ForCausalLM has no combine_hidden_states" in refusal()


def test_all_that_moved_is_named_at_once(tree, refusal):
    with tree.model("deepseek_eagle3").open("a") as file:
        file.write("def helper():\n    pass\n")
    doctor(tree.model("utils"), "def get_draft_quant_config(", "def get_its_config(")
    tree.model("qwen3_eagle3").unlink()
    tree.model("draft_vocabulary").touch()
    said = refusal()
    assert "deepseek_eagle3.py: the file has changed" in said
    assert "vllm.model_executor.models.utils has no get_draft_quant_config" in said
    assert "qwen3_eagle3.py: the file is gone" in said
    assert "models/draft_vocabulary.py is there already" in said


def test_a_file_that_python_cannot_read_is_named(tree, refusal):
    tree.model("llama_eagle3").write_text("<<<<<<< HEAD\n")
    assert "llama_eagle3.py is no Python that can be read" in refusal()


@pytest.mark.parametrize("name", ["receives_quant_config", "is_quantised"])
def test_in_a_checkout_the_test_of_a_replaced_part_goes_or_is_missed(
    export, tree, tmp_path, name
):
    file = tree.root / "tests" / "model_executor" / "test_eagle_quantization.py"
    file.parent.mkdir(parents=True)
    file.write_text(f"def test_eagle3_lm_head_{name}():\n    pass\n")
    output = tmp_path / "patches"
    done = export("--vllm", tree.root, "--output", output)
    if name == "receives_quant_config":
        assert done.returncode == 0, done.stderr
        gone = [f"\n-def test_eagle3_lm_head_{name}" in read(p) for p in listed(output)]
        assert gone == [False, False, True]
    else:
        assert done.returncode == 2
        assert "test_eagle3_lm_head_receives_quant_config is defined 0" in done.stderr
        assert not output.exists()


def listed(folder):
    return sorted(folder.iterdir())


def read(path):
    return path.read_text()


def test_what_the_series_does_not_touch_may_move(export, tree, tmp_path):
    """Nor do the draft models that the fork's tests compare with count."""
    for name in ("qwen3_dflash", "registry"):
        with tree.model(name).open("a") as file:
            file.write("MOVED = True\n")
    done = export("--vllm", tree.root, "--output", tmp_path / "patches")
    assert done.returncode == 0, done.stderr


def test_a_folder_without_a_vllm_is_refused(export, tmp_path):
    done = export("--vllm", tmp_path, "--output", tmp_path / "patches")
    assert done.returncode == 2
    assert f"{tmp_path} holds no vLLM; name a checkout" in done.stderr


def test_a_folder_in_use_is_left_alone(export, tree, tmp_path):
    (tmp_path / "patches").mkdir()
    (tmp_path / "patches" / "mine.patch").touch()
    done = export("--vllm", tree.root, "--output", tmp_path / "patches")
    assert done.returncode == 2
    assert "patches is not an empty folder" in done.stderr
    assert os.listdir(tmp_path / "patches") == ["mine.patch"]


@pytest.mark.parametrize(
    ("environment", "sentence"),
    [
        ({"PATH": "/nowhere"}, "git was not found"),
        ({"GIT_AUTHOR_EMAIL": "", "GIT_AUTHOR_NAME": ""}, "git does not know whom"),
    ],
)
def test_without_git_or_a_name_nothing_is_written(
    export, tree, tmp_path, environment, sentence
):
    done = export("--vllm", tree.root, "--output", tmp_path / "out", **environment)
    assert done.returncode == 2
    assert sentence in done.stderr
    assert not (tmp_path / "out").exists()

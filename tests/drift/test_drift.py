# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""Nothing is reported of a vLLM that has moved nothing, and the right names else."""

import json
from pathlib import Path

import pytest
import vllm

from tests.drift.doctored import CopiedTree
from vllm_eagle3 import cli
from vllm_eagle3.drift.compare import Finding, compare

STOCK = Path(vllm.__file__).parent
MODELS = "model_executor/models"


@pytest.fixture
def tree(tmp_path: Path) -> CopiedTree:
    return CopiedTree(STOCK, tmp_path)


def found(tree: CopiedTree) -> dict[str, Finding]:
    return {finding.name: finding for finding in compare(tree.package)}


def test_the_installed_vllm_has_moved_nothing(capsys):
    assert cli.main(["drift"]) == 0
    assert "none of the" in capsys.readouterr().out


def test_a_class_with_another_name_is_gone_with_all_that_uses_it(tree):
    file = "model_executor/layers/logits_processor.py"
    tree.replace(file, "class LogitsProcessor", "class LogitProcessor")
    name = "vllm.model_executor.layers.logits_processor:LogitsProcessor"
    findings = found(tree)
    assert list(findings) == [name]
    assert findings[name].change == "gone"
    assert "vllm/model_executor/models/eagle3_head.py" in findings[name].files


def test_a_function_that_went_elsewhere_is_found_there(tree):
    path = tree.package / "model_executor" / "layers" / "logits_processor.py"
    tree.write("model_executor/layers/logits.py", path.read_text())
    tree.write("model_executor/layers/logits_processor.py", "")
    (finding,) = compare(tree.package)
    assert "one is in vllm.model_executor.layers.logits," in finding.what


def test_a_module_that_is_gone_is_named(tree):
    tree.remove("transformers_utils/configs/eagle.py")
    findings = found(tree)
    name = "vllm.transformers_utils.configs.eagle:EAGLEConfig"
    assert "no module vllm.transformers_utils.configs.eagle" in findings[name].what
    assert findings[name].files == ("vllm_eagle3/draft_config.py",)


def test_a_file_that_python_cannot_read_is_named(tree, capsys):
    """As after a merge that stopped half way."""
    tree.write(f"{MODELS}/llama_eagle3.py", "<<<<<<< HEAD\n")
    assert cli.main(["drift", "--vllm", str(tree.package)]) == 2
    error = capsys.readouterr().err
    assert "llama_eagle3.py is no Python that can be read" in error


def test_a_new_parameter_is_named(tree):
    file = "config/speculative.py"
    tree.replace(file, "def hf_config_override(", "def hf_config_override(more, ")
    finding = found(tree)[
        "vllm.config.speculative:SpeculativeConfig.hf_config_override"
    ]
    assert finding.change == "signature"
    assert finding.what == "parameters: more is new"
    assert finding.files == ("vllm_eagle3/config_class.py",)


def test_another_default_of_a_constructor_is_named(tree):
    tree.replace(
        "model_executor/layers/layernorm.py", "eps: float = 1e-6,", "eps: float = 1e-5,"
    )
    finding = found(tree)["vllm.model_executor.layers.layernorm:RMSNorm"]
    assert finding.what == "parameters: eps was 1e-06, is 1e-05"
    assert finding.files == ("vllm/model_executor/models/eagle3_layer.py",)


def test_an_annotation_may_change_freely(tree):
    tree.replace(
        "model_executor/layers/layernorm.py", "eps: float = 1e-6,", "eps: int = 1e-6,"
    )
    assert compare(tree.package) == []


def test_a_wrapped_function_that_does_something_else_is_named(tree):
    file = "transformers_utils/configs/eagle.py"
    tree.replace(file, "super().__init__(", "super().__init__(more=1, ")
    finding = found(tree)["vllm.transformers_utils.configs.eagle:EAGLEConfig.__init__"]
    assert finding.change == "body"


def test_a_comment_may_change_freely(tree):
    file = "transformers_utils/configs/eagle.py"
    tree.replace(file, "super().__init__(", "# A remark.\n        super().__init__(")
    assert compare(tree.package) == []


@pytest.mark.parametrize("family", ["llama", "qwen3", "deepseek"])
def test_a_changed_function_of_a_replaced_file_is_named(tree, family):
    file = f"{MODELS}/{family}_eagle3.py"
    text = (STOCK / file).read_text()
    place = text.index("def compute_logits")
    body = text.index(":\n", text.index(")", place)) + 2
    tree.write(file, f"{text[:body]}        print()\n{text[body:]}")
    (finding,) = compare(tree.package)
    assert finding.change == "body"
    assert finding.name.startswith(f"vllm.model_executor.models.{family}_eagle3:")
    assert finding.name.endswith(".compute_logits")
    assert finding.files == (f"vllm/model_executor/models/{family}_eagle3.py",)


def test_a_function_that_a_replaced_file_has_more_counts_too(tree):
    file = f"{MODELS}/llama_eagle3.py"
    tree.write(file, (STOCK / file).read_text() + "\ndef more(): ...\n")
    (finding,) = compare(tree.package)
    assert (finding.name, finding.change) == (file, "file")


def test_a_changed_reference_is_named(tree):
    file = f"{MODELS}/qwen3_dspark.py"
    tree.write(file, (STOCK / file).read_text() + "\n")
    (finding,) = compare(tree.package)
    assert finding.name == file


def test_a_checkout_is_reported_in_json_without_importing_it(tree, capsys):
    tree.write("__init__.py", "raise RuntimeError('imported')\n")
    tree.remove("model_executor/layers/logits_processor.py")
    assert cli.main(["drift", "--vllm", str(tree.package.parent), "--json"]) == 1
    report = json.loads(capsys.readouterr().out)
    assert report["path"] == str(tree.package)
    (finding,) = report["findings"]
    assert finding["change"] == "gone"
    assert finding["files"] == ["vllm/model_executor/models/eagle3_head.py"]


def test_the_findings_are_shown_with_our_files(tree, capsys):
    tree.remove("model_executor/layers/logits_processor.py")
    assert cli.main(["drift", "--vllm", str(tree.package)]) == 1
    shown = capsys.readouterr().out
    assert "touches: vllm/model_executor/models/eagle3_head.py" in shown
    assert "Files to look at: vllm/model_executor/models/eagle3_head.py" in shown


def test_a_folder_without_vllm_is_a_users_mistake(tmp_path, capsys):
    assert cli.main(["drift", "--vllm", str(tmp_path)]) == 2
    said = capsys.readouterr().err
    assert said.startswith("vllm-eagle3: error: ")
    assert said.count("\n") == 1

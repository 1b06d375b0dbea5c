# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""The site has all pages, and links of all documents lead somewhere.

`make docs` builds the site strictly; these are the parts that need no MkDocs.
"""

import importlib.util
import re
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.docs import shown

ROOT = shown.ROOT
HOOKS = ROOT / "tools" / "docs" / "hooks.py"
PAGES = sorted((ROOT / "docs").rglob("*.md"))


def name(path: Path) -> str:
    return str(path.relative_to(ROOT))


class Loader(yaml.SafeLoader):
    """Reads mkdocs.yml, whose `!ENV` only MkDocs knows."""


Loader.add_constructor("!ENV", lambda loader, node: loader.construct_sequence(node))


def in_navigation(entry: Any) -> list[str]:
    if isinstance(entry, str):
        return [entry]
    if isinstance(entry, dict):
        entry = list(entry.values())
    return [page for part in entry for page in in_navigation(part)]


def test_the_navigation_has_every_page_once():
    settings = yaml.load((ROOT / "mkdocs.yml").read_text("utf-8"), Loader)
    pages = [str(path.relative_to(ROOT / "docs")) for path in PAGES]
    assert sorted(in_navigation(settings["nav"])) == sorted(pages)


@pytest.mark.parametrize("path", PAGES, ids=name)
def test_a_page_has_one_title(path: Path):
    text = without_code(path.read_text(encoding="utf-8"))
    if "{{ C" not in text:  # a page that is a document of the root has its title
        assert len(re.findall(r"^# ", text, re.MULTILINE)) == 1


def without_code(text: str) -> str:
    return re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)


def anchors(path: Path) -> set[str]:
    """The anchors of a document's headings, as GitHub and MkDocs make them."""
    text = without_code(path.read_text(encoding="utf-8"))
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    plain = [re.sub(r"[^\w\s-]", "", heading).strip().lower() for heading in headings]
    return {re.sub(r"\s", "-", heading) for heading in plain}


@pytest.mark.parametrize("path", shown.documents(), ids=name)
def test_links_and_pictures_of_a_document_exist(path: Path):
    text = without_code(path.read_text(encoding="utf-8"))
    for target in re.findall(r"\]\((?!\w+:)([^)\s]+)\)", text):
        place, _, anchor = target.partition("#")
        other = (path.parent / place).resolve() if place else path
        assert other.exists(), target
        if anchor:
            assert anchor in anchors(other), target


@pytest.mark.parametrize("path", shown.documents(), ids=name)
def test_pictures_have_a_text_for_those_who_do_not_see_them(path: Path):
    text = without_code(path.read_text(encoding="utf-8"))
    assert all(len(words) > 20 for words in re.findall(r"!\[([^\]]*)\]\(", text))


@pytest.mark.parametrize("path", sorted((ROOT / "docs" / "api").glob("*.md")), ids=name)
def test_modules_on_an_api_page_exist(path: Path):
    modules = re.findall(r"^::: (\S+)$", path.read_text("utf-8"), re.MULTILINE)
    assert modules
    for module in modules:
        assert (ROOT / f"{module.replace('.', '/')}.py").is_file(), module


def test_the_lock_of_the_sites_environment_agrees_with_its_requirements():
    folder = ROOT / "requirements"
    pins = re.findall(r"^\w.*==.*$", (folder / "docs.txt").read_text("utf-8"), re.M)
    locked = (folder / "lock" / "docs.txt").read_text("utf-8").splitlines()
    assert pins
    assert set(pins) <= set(locked)


@pytest.mark.parametrize("folder", ["vllm/model_executor/models", "vllm_eagle3"])
def test_the_architecture_has_a_place_for_every_file(folder: str):
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    named = [name.replace("…", "*") for name in re.findall(r"`([\w*…]+\.py)`", text)]
    files = {path.name for path in (ROOT / folder).glob("*.py")} - {"__init__.py"}
    homeless = {f for f in files if not any(fnmatch(f, name) for name in named)}
    assert homeless == set()


@pytest.fixture(scope="module")
def hooks():
    spec = importlib.util.spec_from_file_location("hooks", HOOKS)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


REPOSITORY_URL = "https://example.org/vllm-eagle3"


@pytest.mark.parametrize(
    ("url", "shown_link"),
    [
        ("", "the code"),
        (REPOSITORY_URL, f"[the code]({REPOSITORY_URL}/blob/main/setup.py)"),
    ],
)
def test_a_link_out_of_the_site_leads_to_the_repository_if_it_is_known(
    hooks, url: str, shown_link: str
):
    page = hooks.rendered("See [the code](../setup.py).", "docs/contract.md", url)
    assert page == f"See {shown_link}."


def test_links_within_the_site_and_code_stay_as_they_are(hooks):
    text = "[a](contract.md#names) [b](https://example.org)\n```\n[c](no.md)\n```\n"
    assert hooks.rendered(text, "docs/index.md", "") == text


def test_a_document_that_is_taken_in_has_the_links_of_its_new_place(hooks):
    page = hooks.rendered("{{ CONTRIBUTING.md }}", "docs/api/check.md", "")
    assert "# Contributing" in page
    assert "](../architecture.md)" in page
    assert "](LICENSE)" not in page


def test_a_section_that_is_taken_in_ends_at_the_next(hooks):
    page = hooks.rendered("{{ README.md: Limits }}", "docs/index.md", "")
    assert "# " not in page
    assert len(page) > 100


@pytest.mark.parametrize(
    ("text", "error"),
    [("[a](../gone.py)", FileNotFoundError), ("{{ README.md: Gone }}", ValueError)],
)
def test_what_is_gone_fails_the_build(hooks, text: str, error: type[Exception]):
    with pytest.raises(error):
        hooks.rendered(text, "docs/index.md", "")

# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""What is in the patches, and that mails of them stay what they are."""

import ast
import difflib
import os
import re
from pathlib import Path

import pytest

from vllm_eagle3 import vllm_tree
from vllm_eagle3.export import command, mail, series

from .trees import SOMEBODY, Tree, git, installed_package

REPOSITORY = Path(__file__).resolve().parents[2]
# They need the files that the series replaces, or are about other draft models.
STAYING = {
    "test_eagle3_rope.py",
    "test_eagle3_stock_parity.py",
    "test_reference_drafts.py",
}
# Travels under another name, for upstream has tests of this one.
RENAMED = {"test_eagle_quantization.py": "test_draft_id_to_target_id.py"}
SUBJECT = re.compile(r"(\[[A-Z][\w ]+\])+ [A-Z].{20,}")


@pytest.fixture(scope="module")
def made():
    return series.compute(vllm_tree.find(installed_package()))


@pytest.fixture(scope="module")
def patches(made, tmp_path_factory):
    output = tmp_path_factory.mktemp("patches")
    with pytest.MonkeyPatch.context() as patch:
        for name, value in SOMEBODY.items():
            patch.setenv(name, value)
        mail.write(made.base, made.commits, output, output)
    return sorted(output.iterdir())


def files(made):
    return {
        path: text for commit in made.commits for path, text in commit.files.items()
    }


def test_every_model_file_travels_and_every_test_that_can(made):
    models = {path.name for path in (REPOSITORY / "vllm").rglob("*.py")}
    tests = {
        RENAMED.get(path.name, path.name): path.read_text()
        for path in (REPOSITORY / "tests" / "model_executor").rglob("test_*.py")
    }
    travelling = {Path(path).name for path in files(made)}
    assert models <= travelling
    assert tests.keys() - travelling >= STAYING
    for name in tests.keys() - travelling - STAYING:
        assert "vllm_eagle3 import" in tests[name], f"{name} could travel"
    assert {name for name in travelling if name.startswith("test_")} <= tests.keys()


def test_every_file_begins_as_upstreams_do(made):
    header = (installed_package() / "__init__.py").read_text().splitlines()[:2]
    assert all(line.startswith("# SPDX-") for line in header)
    for path, text in files(made).items():
        assert text.splitlines()[:2] == header, path


def test_nothing_in_the_patches_needs_the_fork(made):
    for path, text in files(made).items():
        assert "vllm-eagle3 project" not in text
        for node in ast.walk(ast.parse(text, path)):
            names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom):
                names = [node.module or ""]
            assert not [n for n in names if n.startswith(("vllm_eagle3", "tests.supp"))]


def test_the_smallest_change_is_two_lines_in_each_model(made):
    for path, text in made.base.items():
        before, after = text.splitlines(), made.commits[0].files[path].splitlines()
        _, _, place, *changed = difflib.unified_diff(before, after, n=0, lineterm="")
        assert place.startswith("@@ ")
        assert [line[0] for line in changed] == ["+", "+"]
        assert "self.draft_id_to_target_id is None" in changed[0]


def test_the_series_says_what_it_is_for_and_leaves_room_to_sign(made):
    for commit in made.commits:
        subject, empty, *body = commit.message.splitlines()
        assert SUBJECT.fullmatch(subject) and len(subject) <= 88
        assert empty == ""
        sections = [line for line in body if line in SECTIONS]
        assert sections == SECTIONS
        assert "Signed-off-by" not in commit.message


SECTIONS = ["Purpose", "Test Plan", "Test Result"]


def test_git_am_makes_the_commits_with_their_tags_and_a_signature(
    made, patches, tmp_path
):
    for path, text in made.base.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_bytes(text.encode())
    Tree(tmp_path).commit()
    git(tmp_path, "am", "--keep-non-patch", "--signoff", *map(str, patches))
    subjects = git(tmp_path, "log", "--reverse", "--format=%s").splitlines()[1:]
    assert subjects == [commit.message.splitlines()[0] for commit in made.commits]
    body = git(tmp_path, "log", "-1", "--format=%b").strip()
    assert body.endswith("Signed-off-by: A. Submitter <a@example.org>")
    for path, text in files(made).items():
        assert (tmp_path / path).read_bytes().decode() == text


def test_settings_of_the_user_do_not_bend_the_patches(made, patches, tmp_path):
    settings = tmp_path / "gitconfig"
    settings.write_text(
        "[diff]\nnoprefix = true\nexternal = false\n[format]\nattach = x\n"
        "coverLetter = true\n[commit]\ngpgSign = true\n[core]\nautocrlf = true\n"
        "[user]\nname = Someone Else\nemail = else@example.org\n"
    )
    output = tmp_path / "patches"
    output.mkdir()
    with pytest.MonkeyPatch.context() as patch:
        for name in SOMEBODY:
            patch.delenv(name, raising=False)
        patch.setenv("GIT_CONFIG_GLOBAL", str(settings))
        mail.write(made.base, made.commits, output, output)
    found = sorted(output.iterdir())
    assert [path.name for path in found] == [path.name for path in patches]
    for path, expected in zip(found, patches, strict=True):
        assert without_origin(path) == without_origin(expected)
    assert "From: Someone Else <else@example.org>" in found[0].read_text()


def test_a_checkout_with_a_user_of_its_own_names_the_patches(
    tree, tmp_path, monkeypatch
):
    """Set by `git config` without `--global`, and nowhere else."""
    git(tree.root, "init", "--quiet")
    git(tree.root, "config", "user.name", "Only Here")
    git(tree.root, "config", "user.email", "here@example.org")
    for name in SOMEBODY:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    written = command.export(vllm_tree.find(tree.root), tmp_path / "patches")
    assert "From: Only Here <here@example.org>" in written[0].read_text()


def without_origin(path: Path) -> list[str]:
    lines = path.read_text().splitlines()
    return [line for line in lines if not line.startswith(("From: ", "Date: "))]


def test_the_command_says_what_it_wrote_and_what_comes_next(export, tmp_path):
    output = tmp_path / "new" / "patches"
    done = export("--vllm", installed_package(), "--output", output)
    assert done.returncode == 0, done.stderr
    names = sorted(os.listdir(output))
    assert [name[:5] for name in names] == ["0001-", "0002-", "0003-"]
    for name in names:
        assert str(output / name) in done.stdout
    assert f"git am --keep-non-patch --signoff {output}/*.patch" in done.stdout
    label = vllm_tree.find(installed_package()).label
    assert done.stdout.startswith(f"Against {label} in {installed_package().parent}:")

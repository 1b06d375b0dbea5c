# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""What is said of each kind of change, in trees of a few lines."""

import json
from collections.abc import Callable

import pytest

from tests.drift.made_up import write_tree
from vllm_eagle3 import cli
from vllm_eagle3.drift import command
from vllm_eagle3.drift.compare import Finding, compare
from vllm_eagle3.drift.table import Entry, Table

Compare = Callable[..., list[Finding]]


@pytest.fixture
def findings(tmp_path) -> Compare:
    """`findings({file: text}, *entries)`."""

    def findings(modules: dict[str, str], *entries: Entry) -> list[Finding]:
        return compare(write_tree(tmp_path, modules), Table(("1.0",), entries))

    return findings


@pytest.mark.parametrize(
    "fact, source, said",
    [
        ("function(a, b)", "def f(a): ...", "parameters: b is gone"),
        ("function(a)", "def f(a, b): ...", "parameters: b is new"),
        ("function(a)", "def f(a, *, b): ...", "parameters: b is new"),
        ("function(a)", "def f(a, **b): ...", "parameters: **b is new"),
        ("function(a=1)", "def f(a=2): ...", "parameters: a was 1, is 2"),
        ("function(a)", "def f(a=2): ...", "parameters: a was required, is 2"),
        ("function(a=1)", "def f(a): ...", "parameters: a was 1, is required"),
        ("function(a, b)", "def f(b, a): ...", "parameters: their order has changed"),
        ("function(a)", "class f: ...", "was a function, is a class"),
        ("function(a)", "async def f(a): ...", "was a function, is a async function"),
        ("class", "f = 1", "was a class, is a value"),
    ],
)
def test_what_a_name_was_and_is(findings, fact, source, said):
    (finding,) = findings({"a.py": source}, Entry("vllm.a:f", (fact,)))
    assert finding.what == said
    assert finding.change == ("kind" if said.startswith("was") else "signature")


def test_it_is_compared_with_the_nearest_of_the_supported_versions(findings):
    entry = Entry("vllm.a:f", ("function(a, b, c)", "function(a)"))
    (finding,) = findings({"a.py": "def f(a, d): ..."}, entry)
    assert finding.what == "parameters: d is new"


def test_what_a_supported_version_lacks_may_be_lacking(findings):
    entry = Entry("vllm.a:f", ("absent", "function(a)"))
    assert findings({"a.py": ""}, entry) == []
    (finding,) = findings({"a.py": "class f: ..."}, entry)
    assert finding.what == "was a function, is a class"


def test_all_files_that_rest_on_it_are_named_and_what_for(findings):
    entry = Entry("vllm.a:f", ("class",), files=("one.py", "two.py"), why="a reason")
    expected = Finding(
        "vllm.a:f", "gone", "vllm.a has no f", ("one.py", "two.py"), "a reason"
    )
    assert findings({"a.py": ""}, entry) == [expected]


@pytest.mark.parametrize(
    "definition", ["def f(a):", "async def f(a):", "class f:", "class f(A):"]
)
def test_what_went_elsewhere_is_found_there_and_nowhere_else(findings, definition):
    modules = {
        "a.py": "",
        "b/__init__.py": f"x = 1\n{definition}\n    ...\n",
        "c.py": "class C:\n    def f(self): ...\n",
        "d.py": "from vllm.b import f\ndef fg(): ...\n",
    }
    (finding,) = findings(modules, Entry("vllm.a:f", ("class",)))
    assert finding.what == "vllm.a has no f; one is in vllm.b"


def test_a_function_may_be_called_as_before_and_do_something_else(findings):
    entry = Entry("vllm.a:f", ("function()",), ("0123456789abcdef",))
    (finding,) = findings({"a.py": "def f(): ..."}, entry)
    assert finding.change == "body"


def test_a_file_can_be_gone(findings):
    (finding,) = findings({}, Entry("a.py", ("file",), ("a hash",)))
    assert (finding.change, finding.what) == ("gone", "the file is gone")


def test_what_follows_from_another_finding_is_left_out(findings):
    gone = [Entry(f"vllm.a:C{rest}", ("class",)) for rest in ("", ".m", ".m.n")]
    assert [finding.name for finding in findings({"a.py": ""}, *gone)] == ["vllm.a:C"]
    (finding,) = findings({"a.py": "class C: ..."}, *gone[:2])
    assert finding.what == "C has no m"


def test_a_file_is_left_out_only_where_its_functions_say_more(findings):
    file = Entry("a.py", ("file",), ("another",))
    (finding,) = findings({"a.py": "", "b.py": ""}, file)
    assert (finding.name, finding.what) == ("a.py", "the file has changed")
    in_it, beside = Entry("vllm.a:f", ("class",)), Entry("vllm.b:f", ("class",))
    assert [f.name for f in findings({}, file, in_it)] == ["vllm.a:f"]
    assert [f.name for f in findings({}, file, beside)] == ["a.py", "vllm.b:f"]


REPORT = """\
a vLLM: 2 of the 3 names and files that this fork rests on moved since vLLM 1 and 2.

vllm.a:f
    is gone
    used for: a reason
    touches: one.py, two.py
b.py
    has changed
    touches: three.py

Files to look at: one.py, three.py, two.py"""


def test_the_report_has_all_that_was_found():
    table = Table(("1", "2"), tuple(Entry(name, ("class",)) for name in "abc"))
    found = [
        Finding("vllm.a:f", "gone", "is gone", ("one.py", "two.py"), "a reason"),
        Finding("b.py", "file", "has changed", ("three.py",)),
    ]
    assert command.describe("a vLLM", table, found) == REPORT


def test_the_json_says_what_was_compared_with_what(tmp_path, capsys, monkeypatch):
    telltale = "model_executor/models/registry.py"
    modules = {"_version.py": "__version__ = '3.0'", "a.py": "", telltale: ""}
    package = write_tree(tmp_path, modules)
    table = Table(("1.0",), (Entry("vllm.a:f", ("class",), files=("one.py",)),))
    monkeypatch.setattr(command.Table, "load", lambda: table)
    assert cli.main(["drift", "--vllm", str(package), "--json"]) == 1
    assert json.loads(capsys.readouterr().out) == {
        "vllm": "3.0",
        "path": str(package),
        "compared_with": ["1.0"],
        "entries": 1,
        "findings": [
            {
                "name": "vllm.a:f",
                "change": "gone",
                "what": "vllm.a has no f",
                "files": ["one.py"],
                "why": "",
            }
        ],
    }


def test_where_no_vllm_is_installed_one_can_be_named(monkeypatch, capsys):
    monkeypatch.setattr(command.importlib.util, "find_spec", lambda name: None)
    assert cli.main(["drift"]) == 2
    assert "vLLM is not installed here; name one" in capsys.readouterr().err

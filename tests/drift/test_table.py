# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""The table has all that the fork rests on, and nothing of vLLM's own text."""

import ast
import importlib.util
import re
from pathlib import Path

import pytest
import vllm

from tests.drift.made_up import write_tree
from vllm_eagle3 import subtree, versions
from vllm_eagle3.drift import rests, table
from vllm_eagle3.drift.tree import Tree

TREE = Tree(Path(vllm.__file__).parent)
NAMES = {entry.name: entry for entry in table.Table.load().entries}
CONVERTOR = (
    "vllm.transformers_utils.model_arch_config_convertor:ModelArchConfigConvertorBase"
)
RENEW = "run `make drift-table`"


def imports_of(path: Path, package: str) -> set[str]:
    """What a file imports from vLLM, read here without the code under test."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom):
            written = "." * node.level + (node.module or "")
            module = importlib.util.resolve_name(written, package)
            if module.split(".")[0] == "vllm":
                found |= {f"{module}:{alias.name}" for alias in node.names}
    return found


def all_imports() -> set[str]:
    models = subtree.models_folder()
    found = set()
    for path in models.glob("*.py"):
        found |= imports_of(path, subtree.PACKAGE)
    for path in Path(subtree.__file__).parent.rglob("*.py"):
        found |= imports_of(path, "vllm_eagle3")
    own = {path.stem for path in models.glob("*.py")}

    def is_own(name: str) -> bool:
        module, _, bound = name.partition(":")
        last = bound if module == subtree.PACKAGE else module.rpartition(".")[2]
        return module.startswith(subtree.PACKAGE) and last in own

    return {name for name in found if not is_own(name)}


def test_every_import_from_vllm_is_in_the_table():
    assert sorted(all_imports() - set(NAMES)) == [], RENEW


def test_the_imports_are_many():
    """The test above would pass on a fork that imports nothing."""
    assert len(all_imports()) > 60


@pytest.mark.parametrize(
    "name, hook",
    [
        (
            "vllm.config.speculative:SpeculativeConfig.hf_config_override",
            "config_class",
        ),
        ("vllm.transformers_utils.configs.eagle:EAGLEConfig.__init__", "draft_config"),
        (f"{CONVERTOR}._normalize_quantization_config", "null_quantization"),
        ("vllm.distributed:parallel_state.initialize_model_parallel", "ranks"),
    ],
)
def test_what_a_hook_wraps_is_pinned_by_its_body(name, hook):
    entry = NAMES[name]
    assert f"vllm_eagle3/{hook}.py" in entry.files
    assert entry.bodies


def test_every_patch_of_the_fork_is_in_the_table():
    """Assignments to something imported from vLLM, read here in another way."""
    patched = re.compile(r"^ +([A-Z]\w+|parallel_state)\.(\w+) = ", re.MULTILINE)
    for path in Path(subtree.__file__).parent.glob("*.py"):
        for owner, member in patched.findall(path.read_text()):
            held = [name for name in NAMES if name.endswith(f".{member}")]
            held += [name for name in NAMES if name.endswith(f":{member}")]
            # No source shows a dataclass's constructor, or how objects are reduced.
            assert held or member in ("__init__", "__reduce_ex__"), (
                f"{owner}.{member} of {path.name} is not in the table; {RENEW}"
            )


def test_every_file_that_it_names_exists():
    root = Path(subtree.__file__).parents[1]
    named = {file for entry in NAMES.values() for file in entry.files}
    assert sorted(file for file in named if not (root / file).is_file()) == []


def test_it_is_derived_from_all_supported_versions():
    assert table.Table.load().versions == versions.SUPPORTED_VLLM, RENEW


def test_it_is_what_is_derived_from_the_source_now():
    """From the installed version alone: names, our files and what is called."""
    now = table.derive({"installed": TREE})
    kept = {name for name, entry in NAMES.items() if table.ABSENT not in entry.facts}
    derived = {entry.name: entry for entry in now.entries}
    assert sorted(kept - set(derived)) == [], RENEW
    assert sorted(set(derived) - set(NAMES)) == [], RENEW
    different = [
        name
        for name, entry in derived.items()
        if (entry.files, entry.called) != (NAMES[name].files, NAMES[name].called)
        or not set(entry.facts) <= set(NAMES[name].facts)
        or not set(entry.bodies) <= set(NAMES[name].bodies)
    ]
    assert different == [], RENEW


def test_it_holds_names_signatures_and_hashes_only():
    fact = re.compile(
        r"(async )?(absent|attribute|class|classmethod|file|function|"
        r"module|name|property|cached_property|staticmethod|value)"
        r"(\(.*\))?"
    )
    for entry in NAMES.values():
        for stated in entry.facts:
            assert fact.fullmatch(stated), entry.name
            assert "\n" not in stated
        assert all(re.fullmatch(r"[0-9a-f]{16,64}", body) for body in entry.bodies)


def test_what_it_rests_on_by_hand_says_why():
    by_hand = (*rests.BEHAVIOUR, *rests.NAMES, *rests.REPLACED, *rests.REFERENCES)
    assert [rest.name for rest in by_hand if NAMES[rest.name].why != rest.why] == []


def test_a_name_by_hand_stands_in_the_file_that_it_matters_to():
    """Else the file has long done without it, and drift would name it all the same."""
    root = Path(subtree.__file__).parents[1]
    assert [
        (rest.name, rest.file)
        for rest in rests.NAMES
        if re.split(r"[:.]", rest.name)[-1] not in (root / rest.file).read_text()
    ] == []


def test_an_import_that_a_version_lacks_stops_the_derivation(monkeypatch):
    rest = rests.Rest("vllm.config:NoSuchConfig", rests.GREEDY, "a test")
    monkeypatch.setattr(rests, "NAMES", (rest,))
    with pytest.raises(ValueError, match="vLLM 0.1 has no vllm.config:NoSuchConfig"):
        table.derive({"0.1": TREE})


USER = """\
from vllm.z import Base, made
from vllm.a import called
from vllm.a import both as alias
import vllm.a as a

class Own(Base): ...
called(1, way=2)
a.replaced = 1
alias.sometimes
"""
ONE = {
    "a.py": """\
        def called(a): ...
        def replaced(): return 1
        class both:
            sometimes = 1
        """,
    "z.py": "class Base:\n    def __init__(self, a): ...\ndef made(): ...",
    "whole.py": "one = 1",
    "model_executor/models/old.py": "class Old:\n    def load(self): return 1",
}
OTHER = ONE | {
    "a.py": """\
        def called(a, way=1): ...
        def replaced(): return 2
        class both: ...
        """,
    "whole.py": "one = 2",
    "model_executor/models/old.py": "class Old:\n    def load(self): return 2",
}


@pytest.fixture
def made_up(tmp_path, monkeypatch) -> dict[str, Tree]:
    """Two versions of a vLLM, and a fork of one file that uses them."""
    (tmp_path / "user.py").write_text(USER)
    own = [(tmp_path / "user.py", "user.py", "vllm_eagle3")]
    monkeypatch.setattr(table, "own_files", lambda: own)
    by_hand = {
        "BEHAVIOUR": ("vllm.z:made", "what it does"),
        "NAMES": ("vllm.z:Base", "a name"),
        "REPLACED": ("model_executor/models/old.py", "replaced"),
        "REFERENCES": ("whole.py", "compared"),
    }
    for group, (name, why) in by_hand.items():
        rest = rests.Rest(name, f"{group}.py", why)
        monkeypatch.setattr(rests, group, (rest,))
    return {
        "1.0": Tree(write_tree(tmp_path / "1.0", ONE)),
        "2.0": Tree(write_tree(tmp_path / "2.0", OTHER)),
    }


def test_all_versions_have_their_say(made_up):
    made = table.derive(made_up)
    assert made.versions == ("1.0", "2.0")
    entries = {entry.name: entry for entry in made.entries}
    stated = {name: (e.facts, len(e.bodies)) for name, e in entries.items()}
    old = "model_executor/models/old.py"
    assert list(stated.items()) == [
        (old, (("file",), 2)),
        ("vllm.a:", (("module",), 0)),
        ("vllm.a:.replaced", (("function()",), 2)),
        ("vllm.a:both", (("class",), 0)),
        ("vllm.a:both.sometimes", (("attribute", "absent"), 0)),
        ("vllm.a:called", (("function(a)", "function(a, way=1)"), 0)),
        ("vllm.model_executor.models.old:Old.load", (("function(self)",), 2)),
        ("vllm.z:Base", (("class(self, a)",), 0)),
        ("vllm.z:made", (("function()",), 1)),
        ("whole.py", (("file",), 2)),
    ]
    assert entries["vllm.z:made"].files == ("BEHAVIOUR.py", "user.py")
    assert entries["vllm.z:Base"].files == ("NAMES.py", "user.py")
    assert (entries[old].files, entries[old].why) == (("REPLACED.py",), "replaced")
    assert entries["vllm.z:made"].why == "what it does"
    assert [name for name, entry in entries.items() if entry.called] == [
        "vllm.a:called",
        "vllm.z:Base",
    ]


@pytest.mark.parametrize("file, gone", [("a.py", "vllm.a:called"), ("z.py", "made")])
def test_what_is_surely_needed_and_missing_is_said(made_up, file, gone):
    path = made_up["2.0"].package / file
    path.write_text(path.read_text().replace(f"def {gone.rpartition(':')[2]}", "def o"))
    with pytest.raises(ValueError, match=f"vLLM 2.0 has no .*{gone}.*user.py needs"):
        table.derive(made_up)


def test_what_is_written_is_read_again(made_up, tmp_path):
    made = table.derive(made_up)
    made.save(tmp_path / "table.json")
    assert table.Table.load(tmp_path / "table.json") == made
    lines = (tmp_path / "table.json").read_text().splitlines()
    assert len(lines) == len(made.entries) + 3  # one for each, and what is around

# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""Names are found where Python would find them, and facts tell what matters of them."""

from collections.abc import Callable

import pytest

from tests.drift.made_up import write_tree
from vllm_eagle3.drift import facts
from vllm_eagle3.drift.table import find
from vllm_eagle3.drift.tree import Tree

MODULES = {
    "base.py": """\
        class Base:
            def __init__(self, size, *, kind="a"):
                self.kept = size

            def inherited(self, way): ...
        """,
    "more/__init__.py": """\
        from .deep import deep
        from ..base import Base as Above
        """,
    "more/deep.py": "def deep(a): ...",
    "compiled.abi3.so": "",
    "lazy.py": "def __getattr__(name): ...",
    "circle.py": "from vllm.other import there, no_module, starred",
    "other.py": """\
        from vllm.circle import there
        from vllm import gone as no_module
        from vllm.circle import *
        """,
    "a.py": """\
        import json
        import vllm.base as renamed
        import vllm.more
        from typing import overload
        from vllm import more as package
        from vllm.base import *
        from torch import nn

        class Own(Base[int]):
            held: int = 1

            @property
            def shown(self): ...

            @overload
            def many(self, a): ...
            @overload
            def many(self, b): ...
            def many(self, c): ...

            async def later(self): ...

        class Other(nn.Module):
            @staticmethod
            def free(a): ...
            @classmethod
            def of(cls, a): ...

        class Bare(renamed.Base): ...

        instance = Own(1)
        other_instance: Own = Own(1)

        @overload
        def many(a): ...
        def many(a, b): ...

        try:
            def tried(a): ...
        except ImportError:
            def excepted(a): ...
        finally:
            finished = 1
        if instance:
            def tested(a): ...
        else:
            def otherwise(a): ...
        with instance:
            within = 1

        def first(a): ...
        def first(a, b): ...
        one, (two, *three) = 1, (2, 3)

        def every(a, /, b, *c, d=1, e, **f): ...
        def named(a=(1, 2), *, b: int = None) -> int: ...
        """,
}


@pytest.fixture
def fact(tmp_path) -> Callable[..., str | None]:
    tree = Tree(write_tree(tmp_path, MODULES))

    def fact(name: str, called: bool = False) -> str | None:
        definition = find(tree, name)
        return definition and facts.fact(tree, definition, called)

    return fact


FOUND = {
    "vllm.a:": "module",
    "vllm.a:json": "module",
    "vllm.a:nn": "name",
    "vllm.a:renamed.Base": "class",
    "vllm.a:package.deep": "function(a)",
    "vllm.more:deep": "function(a)",
    "vllm.more:Above": "class",
    "vllm.a:Base": "class",
    "vllm.compiled:anything": "name",
    "vllm.lazy:anything": "name",
    "vllm.circle:there": "name",
    "vllm.a:Own.held": "attribute",
    "vllm.a:Own.kept": "attribute",
    "vllm.a:Own.inherited": "function(self, way)",
    "vllm.a:Own.shown": "property(self)",
    "vllm.a:Own.many": "function(self, c)",
    "vllm.a:Own.later": "async function(self)",
    "vllm.a:Other.free": "staticmethod(a)",
    "vllm.a:Other.of": "classmethod(cls, a)",
    "vllm.a:Bare.inherited": "function(self, way)",
    "vllm.a:instance.shown": "property(self)",
    "vllm.a:other_instance.shown": "property(self)",
    "vllm.a:many": "function(a, b)",
    "vllm.a:tried": "function(a)",
    "vllm.a:excepted": "function(a)",
    "vllm.a:finished": "value",
    "vllm.a:tested": "function(a)",
    "vllm.a:otherwise": "function(a)",
    "vllm.a:within": "value",
    "vllm.a:first": "function(a)",
    "vllm.a:three": "value",
    "vllm.a:every": "function(a, /, b, *c, d=1, e, **f)",
    "vllm.a:named": "function(a=(1, 2), *, b=None)",
    # None: there is no such thing, or another package has it.
    "vllm.gone:": None,
    "vllm.gone:anything": None,
    "vllm.a:gone": None,
    "vllm.circle:no_module": None,
    "vllm.a:Own.gone": None,
    "vllm.a:Other.register_buffer": None,
    "vllm.a:one.real": None,
    "vllm.a:first.name": None,
}


@pytest.mark.parametrize("name", FOUND)
def test_a_name_is_found_and_told(fact, name):
    assert fact(name) == FOUND[name]


def test_of_a_class_that_is_made_the_constructor_counts(fact):
    constructor = "class(self, size, *, kind='a')"
    assert fact("vllm.base:Base", called=True) == constructor
    assert fact("vllm.a:Own", called=True) == constructor
    assert fact("vllm.a:Other", called=True) == "class"


def test_functions_of_a_module_are_those_of_its_classes_too(tmp_path):
    tree = Tree(write_tree(tmp_path, MODULES))
    assert list(tree.functions("vllm.base")) == ["Base.__init__", "Base.inherited"]
    assert list(tree.functions("vllm.more.deep")) == ["deep"]


BODY = '''\
def f(a):
    """What it says."""
    for b in a:
        yield b + 1


after = 1
'''


@pytest.mark.parametrize(
    "before, after, same",
    [
        ("What it says.", "Says\n    something\n    else.", True),
        ("    for", "    # A remark.\n    for", True),
        ("b + 1", "b+1", True),
        ("    for", "\n    for", True),
        ("after = 1", "after = 2", True),
        ("b + 1", "b + 2", False),
        ("def f(a)", "def f(a, c=1)", False),
        ("        yield b + 1", "        yield b + 1\n        yield b", False),
    ],
)
def test_a_body_is_what_a_function_does(tmp_path, before, after, same):
    assert before in BODY
    hashes = []
    for number, text in enumerate((BODY, BODY.replace(before, after))):
        tree = Tree(write_tree(tmp_path / str(number), {"a.py": text}))
        definition = find(tree, "vllm.a:f")
        assert definition is not None
        hashes.append(facts.body_hash(tree, definition))
    assert (hashes[0] == hashes[1]) is same


def test_every_byte_of_a_file_counts(tmp_path):
    one, other = tmp_path / "one", tmp_path / "other"
    one.write_bytes(b"a\n")
    other.write_bytes(b"a\n\n")
    assert facts.file_hash(one) != facts.file_hash(other)
    other.write_bytes(b"a\n")
    assert facts.file_hash(one) == facts.file_hash(other)

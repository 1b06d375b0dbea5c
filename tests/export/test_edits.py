# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""Edits find their place by names, or refuse."""

import dataclasses
import textwrap

import pytest

from vllm_eagle3.export.edits import InsertIntoBranch, Moved, RemoveFunction

EDIT = InsertIntoBranch(
    path="model.py",
    method="Model.load",
    value="map",
    variable="name",
    needs=("offsets",),
    statement="if self.offsets is None:\n    continue\n",
)
TEXT = textwrap.dedent("""\
    class Other:
        def load(self):
            if "map" in name:
                pass


    class Model:
        def __init__(self):
            self.offsets = self.other

        def load(self, names):
            for name in names:
                if "other" in name:
                    pass
                elif "map" in name:  # a comment
                    # Another.
                    name = name.upper()
                    use(name)
                if "map" not in name:
                    pass
    """)


def test_the_statement_stands_first_in_the_branch_and_nothing_else_changes():
    before, after = TEXT.splitlines(), EDIT.apply(TEXT).splitlines()
    place = before.index("                name = name.upper()")
    inserted = ["if self.offsets is None:", "    continue"]
    assert after[place : place + 2] == [" " * 16 + line for line in inserted]
    assert after[:place] + after[place + 2 :] == before


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"method": "Gone.load"}, "Gone is defined 0 times"),
        ({"method": "Model.gone"}, "gone is defined 0 times"),
        ({"value": "d2t"}, 'Model.load tests `"d2t" in name` 0 times'),
        ({"variable": "key"}, 'Model.load tests `"map" in key` 0 times'),
        ({"needs": ("other",)}, "Model sets no other"),
    ],
)
def test_a_place_that_is_gone_is_named(change, sentence):
    with pytest.raises(Moved, match="^model.py: ") as refused:
        dataclasses.replace(EDIT, **change).apply(TEXT)
    assert sentence in str(refused.value)


def test_a_place_that_is_there_twice_is_refused():
    twice = TEXT + '            if "map" in name:\n                pass\n'
    with pytest.raises(Moved, match="2 times and not once"):
        EDIT.apply(twice)


BEFORE = "import pytest\n\n\ndef first():\n    pass\n"
SECOND = (
    "\n\n@pytest.mark.one\n@pytest.mark.two\ndef second(\n    argument,\n):\n"
    "    return argument\n"
)
THIRD = "\n\ndef third():\n    pass\n"


@pytest.mark.parametrize("after", ["", THIRD])
def test_a_function_goes_with_all_that_is_its_own(after):
    remove = RemoveFunction("test.py", "second")
    assert remove.apply(BEFORE + SECOND + after) == BEFORE + after


def test_a_function_that_is_not_there_is_named():
    with pytest.raises(Moved, match="^test.py: second is defined 0 times"):
        RemoveFunction("test.py", "second").apply(BEFORE + THIRD)

# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""An empty line ends a docstring's last section, and no other docstring changes."""

import ast

from vllm_eagle3.export.docstrings import close_sections

HERE = '''\
"""Of a module.

Args:
    none: but it looks like it.
"""


class Thing:
    """One.

    Attributes:
        size: in ids.
    """

    def plain(self):
        """No section: here."""

    def raises(self):
        """Two.

        Raises:
            ValueError: often.

        """
        return """
        Returns:
        """
'''


def test_only_docstrings_with_sections_that_end_at_once_get_a_line():
    lines = HERE.splitlines()
    place = lines.index("        size: in ids.") + 1
    expected = [*lines[:place], "", *lines[place:]]
    assert close_sections(HERE).splitlines() == expected
    assert close_sections(close_sections(HERE)) == close_sections(HERE)
    ast.parse(close_sections(HERE))

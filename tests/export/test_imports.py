# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""Imports get upstream's groups, and nothing else of a file changes."""

import pytest

from vllm_eagle3.export.imports import regroup, without_unused

HERE = '''\
"""A docstring."""

import re
from typing import Any

import torch
from torch import nn
from vllm.config import (
    VllmConfig,
)
from vllm.logger import init_logger

from .quantisation import Kind  # a comment
from .ready import build

from .conftest import AUX_IDS

logger = init_logger(__name__)


def late():
    from vllm.utils import later
    import torch
'''
UPSTREAM = '''\
"""A docstring."""

import re
from typing import Any

import torch
from torch import nn

from vllm.config import (
    VllmConfig,
)
from vllm.logger import init_logger

from .conftest import AUX_IDS
from .quantisation import Kind  # a comment
from .ready import build

logger = init_logger(__name__)


def late():
    from vllm.utils import later
    import torch
'''


def test_vllm_and_the_neighbours_stand_in_groups_of_their_own():
    assert regroup(HERE) == UPSTREAM
    assert regroup(UPSTREAM) == UPSTREAM


@pytest.mark.parametrize(
    "text",
    [
        "# SPDX\n",
        '"""A docstring."""\n\nX = 1\n',
        "import torch\n\nX = 1\n",
        "from vllm.config import VllmConfig\n\n\ndef f():\n    pass\n",
        "import re\n\nimport torch\n\nfrom .drafts import load\n\nX = 1\n",
        "import vllm_extension\n\nfrom vllm.config import VllmConfig\n\nX = 1\n",
    ],
)
def test_what_is_in_order_stays(text):
    assert regroup(text) == text


def test_an_import_goes_when_nothing_uses_it():
    gone = "from .checks import (\n    one,\n    two,\n)\n"
    text = f"import re\n\n{gone}from .drafts import load\n"
    used = "\nX = load(re)\n"
    assert without_unused(text + used) == text.replace(gone, "") + used
    assert without_unused(text + used + "two()\n") == text + used + "two()\n"

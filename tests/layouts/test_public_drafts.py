# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""Every public draft whose layout is known loads right, or is refused in one sentence.

Vocabulary sizes are the real ones, so a case takes about a second.
"""

import re

import pytest

from .checkpoint import build
from .drafts import DRAFTS
from .small import refusal, serve

SERVED = [recipe for recipe in DRAFTS if recipe.refused is None]
REFUSED = [recipe for recipe in DRAFTS if recipe.refused is not None]


def names(recipe):
    return recipe.name


@pytest.mark.parametrize("recipe", SERVED, ids=names)
def test_a_public_draft_computes_what_its_paper_says(recipe, tmp_path):
    serve(build(recipe), tmp_path)


@pytest.mark.parametrize("recipe", REFUSED, ids=names)
def test_a_public_draft_that_cannot_be_served_is_refused(recipe, tmp_path):
    assert re.search(recipe.refused, refusal(build(recipe), tmp_path))

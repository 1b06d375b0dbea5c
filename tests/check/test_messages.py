# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""docs/messages.md explains every message of the code, and none that is gone.

`python -m tests.check.messages` prints the differences.
"""

from collections import Counter

import pytest

from tests.check import messages


def test_every_message_is_explained():
    explained = set(messages.in_document())
    lacking = {m: f for m, f in messages.in_source().items() if m not in explained}
    assert lacking == {}


def test_no_explained_message_is_gone():
    assert set(messages.in_document()) - messages.in_source().keys() == set()


def test_none_is_explained_twice():
    counts = Counter(messages.in_document())
    assert [message for message, count in counts.items() if count > 1] == []


@pytest.mark.parametrize(
    "part",
    [
        # An f-string with an expression, a %-format, a sentence out of pieces.
        "maps draft id … to target id …, outside the target vocabulary",
        "EAGLE-3 draft tensors that this configuration does not use: …",
        "d2t is missing: …, less than the target's vocabulary …, so the checkpoint",
    ],
)
def test_messages_are_found_in_the_source(part: str):
    assert any(part in message for message in messages.in_source())

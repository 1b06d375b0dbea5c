# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""Bytes of a step by hand, for the vocabularies that a report's test does not have."""

import pytest

from vllm_eagle3.check.cost import Row

T = 1024


@pytest.mark.parametrize(
    "row, stock, greedy, probabilistic",
    [
        pytest.param(
            Row(draft=1088, target=T, embedded=1088, mapped=False, logit_bytes=2),
            5 * 8 * 1088 + 2 * 2 * 1088 + 2 * 2 * 1088,
            2 * T,  # padding is not scored
            2 * T,
            id="padded",
        ),
        pytest.param(
            Row(draft=256, target=T, embedded=256, mapped=False, logit_bytes=2),
            5 * 8 * 256 + 2 * 2 * 256 + 2 * 2 * 256,
            2 * 256,  # no id is looked up
            2 * 256 + 2 * 2 * T,
            id="unpadded",
        ),
        pytest.param(
            Row(draft=256, target=T, embedded=1088, mapped=True, logit_bytes=4),
            5 * 8 * 256 + 2 * 4 * 256 + 2 * 4 * 1088,  # as wide as the draft's config
            4 * 256 + 8,
            8 * 256 + 4 * 256 + 2 * 4 * T,
            id="reduced before padded embeddings",
        ),
        pytest.param(
            Row(draft=T, target=T, embedded=T, mapped=True, logit_bytes=2),
            5 * 8 * T + 2 * 2 * T + 2 * 2 * T,
            2 * T + 8,
            8 * T + 2 * T + 2 * 2 * T,
            id="permuted",
        ),
    ],
)
def test_bytes_of_a_step(row: Row, stock: int, greedy: int, probabilistic: int):
    assert row.stock() == stock
    assert row.greedy() == greedy
    assert row.probabilistic() == probabilistic

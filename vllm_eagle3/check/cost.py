# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""How many bytes a draft step moves behind the head's matmul, by arithmetic.

Counted for one row (one request, one draft token), reads and writes of main memory,
with `e` bytes for a logit and 8 for an id. `D` draft ids, `T` target ids. The matmul
itself, `D * hidden * e` bytes of weights for the whole batch, is the same everywhere
and left out.

=================================  =============================================
stock, no map                      argmax reads the logits:            `T e`
stock, map, greedy                 index built again (`arange`, add):  `4 * 8 D`
                                   `[1, T]` of -inf written:           `T e`
                                   scatter: ids, logits read, written: `8 D + 2 D e`
                                   argmax reads:                       `T e`
stock, map, probabilistic          the same without the argmax; softmax and
                                   sampling read what was written:     `T e`
here, greedy                       argmax over draft ids:              `D e`
                                   one id looked up:                   `8`
here, probabilistic, map           one write of `[1, T]`:              `T e`
                                   one read of ids and of logits:      `8 D + D e`
                                   sampling reads:                     `T e`
=================================  =============================================

A prefix (unpadded) vocabulary is a pad here: no ids are read. In stock it is a map. A
padded head scores its padding in stock, and not here.
"""

from dataclasses import dataclass

_ID_BYTES = 8


@dataclass(frozen=True)
class Row:
    """One row of logits.

    Attributes:
        draft: `D`, head rows as the checkpoint has them.
        target: `T`.
        embedded: `C`, as wide as stock makes its logits.
        mapped: whether ids are looked up here, and not only padded or cut.
        logit_bytes: `e`.
    """

    draft: int
    target: int
    embedded: int
    mapped: bool
    logit_bytes: int

    @property
    def _draft_bytes(self) -> int:
        return self.draft * self.logit_bytes

    @property
    def _target_bytes(self) -> int:
        return self.target * self.logit_bytes

    def stock(self) -> int:
        """Bytes of vLLM's own files, which treat greedy and probabilistic alike."""
        if self.draft == self.target and not self.mapped:
            return self._draft_bytes
        index = 5 * _ID_BYTES * self.draft
        widened = self.embedded * self.logit_bytes
        return index + 2 * self._draft_bytes + 2 * widened

    def greedy(self) -> int:
        """Bytes here: the argmax stays among the draft's ids."""
        scored = min(self.draft, self.target) * self.logit_bytes
        return scored + (_ID_BYTES if self.mapped else 0)

    def probabilistic(self) -> int:
        """Bytes here where a `[1, T]` row of logits is asked for."""
        if self.draft >= self.target and not self.mapped:
            return self._target_bytes
        ids = _ID_BYTES * self.draft if self.mapped else 0
        return ids + self._draft_bytes + 2 * self._target_bytes

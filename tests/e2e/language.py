# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""A synthetic language, and a plain simulation of speculating in it.

The language is one cycle over 992 tokens: every token has exactly one successor.
A place in the cycle is told by two features, ``first = place % 32`` and
``second = place % 31``; as 32 and 31 share no factor, each pair names exactly one
of the 992 places, and the next token advances both features by one. Token ids are
shuffled, so that neighbours in the cycle are no neighbours in the vocabulary.

A target that knows the language always continues with the successor. The draft of
``checkpoints.py`` splits the work the way a real EAGLE-3 draft does:

* ``first`` it reads from the *embedding* of the newest token;
* ``second`` it reads from the *hidden state* it is handed, one token behind: the
  target's at the first drafted token, its own output at the later ones.

Its head then scores each entry of the draft vocabulary with 32 points for each
feature that fits the next place, plus a preference of less than 8 points that
differs for every token. Thus an entry with both features beats all others; if there
is none, the preference decides among the entries with one of them. A draft that
ignores either input cannot tell which token fits both.

Some entries are *misled*: two of them have exchanged their features, so the draft
confidently proposes the one where the other is right. That, and the tokens that a
reduced vocabulary leaves out, is where it gets rejected.

Everything here is integers and floats in plain Python. It knows nothing about
vLLM, tensors or checkpoints, and it is what the engine's counters are held against.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

FIRST_VALUES = 32
SECOND_VALUES = 31
VOCAB_SIZE = FIRST_VALUES * SECOND_VALUES
FEATURE_POINTS = 32.0
PREFERENCE_RANGE = 8.0
NUM_SPECULATIVE_TOKENS = 3
_SEED = 20480


@dataclass(frozen=True)
class Language:
    """The cycle: token id of every place, and back.

    Attributes:
        token_at: Token id of each place of the cycle, ``[VOCAB_SIZE]``.
        place_of: Place in the cycle of each token id, ``[VOCAB_SIZE]``.
    """

    token_at: tuple[int, ...]
    place_of: tuple[int, ...]

    @classmethod
    def create(cls) -> "Language":
        """Shuffle the token ids along the cycle, the same way every time."""
        token_at = list(range(VOCAB_SIZE))
        random.Random(_SEED).shuffle(token_at)
        place_of = [0] * VOCAB_SIZE
        for place, token in enumerate(token_at):
            place_of[token] = place
        return cls(tuple(token_at), tuple(place_of))

    def successor(self, token: int) -> int:
        """The one token that may follow ``token``."""
        return self.token_at[(self.place_of[token] + 1) % VOCAB_SIZE]

    def continuation(self, token: int, length: int) -> list[int]:
        """The ``length`` tokens that follow ``token``."""
        start = self.place_of[token] + 1
        return [self.token_at[(start + i) % VOCAB_SIZE] for i in range(length)]

    def features(self, token: int) -> tuple[int, int]:
        """The pair (first, second) of the token's place."""
        place = self.place_of[token]
        return place % FIRST_VALUES, place % SECOND_VALUES


LANGUAGE = Language.create()


@dataclass(frozen=True)
class DraftVocabulary:
    """What the rows of a draft's head mean, and what they respond to.

    Attributes:
        target_ids: Target token id that each draft id stands for, ``[D]``.
        fits: Token whose features each draft id's row carries, ``[D]``. Equal to
            its target id, except where the entry is misled.
        preference: Points that each row adds whatever it sees, ``[D]``.
    """

    target_ids: tuple[int, ...]
    fits: tuple[int, ...]
    preference: tuple[float, ...]

    def __len__(self) -> int:
        return len(self.target_ids)

    @property
    def offsets(self) -> list[int]:
        """The ``d2t`` tensor: target id minus draft id, ``[D]``."""
        return [target - draft for draft, target in enumerate(self.target_ids)]

    @property
    def mask(self) -> list[bool]:
        """The ``t2d`` tensor: which target ids the draft can say, ``[T]``."""
        kept = set(self.target_ids)
        return [token in kept for token in range(VOCAB_SIZE)]

    def rows(self, draft_ids: Sequence[int]) -> "DraftVocabulary":
        """The vocabulary that keeps these rows, in this order."""
        return DraftVocabulary(
            tuple(self.target_ids[k] for k in draft_ids),
            tuple(self.fits[k] for k in draft_ids),
            tuple(self.preference[k] for k in draft_ids),
        )

    def with_target_ids(self, target_ids: Sequence[int]) -> "DraftVocabulary":
        """The same head under another (say, a wrong) id map."""
        return DraftVocabulary(tuple(target_ids), self.fits, self.preference)

    @cached_property
    def _row_points(self) -> list[tuple[int, int, float]]:
        features = (LANGUAGE.features(token) for token in self.fits)
        return [
            (first, second, bonus)
            for (first, second), bonus in zip(features, self.preference, strict=True)
        ]

    def best(self, first: int, second: int) -> int:
        """Target id of the row with most points for the next (first, second)."""

        def points(row: tuple[int, int, float]) -> float:
            matches = (row[0] == first) + (row[1] == second)
            return FEATURE_POINTS * matches + row[2]

        rows = self._row_points
        return self.target_ids[max(range(len(rows)), key=lambda k: points(rows[k]))]


def full_vocabulary(misled_share: float = 0.2) -> DraftVocabulary:
    """All tokens, draft id equal to target id, a share of them misled in pairs."""
    rng = random.Random(_SEED + 1)
    fits = list(range(VOCAB_SIZE))
    misled = rng.sample(fits, 2 * int(misled_share * VOCAB_SIZE / 2))
    for one, other in zip(misled[::2], misled[1::2], strict=True):
        fits[one], fits[other] = other, one
    ranks = rng.sample(range(VOCAB_SIZE), VOCAB_SIZE)
    preference = [PREFERENCE_RANGE * rank / VOCAB_SIZE for rank in ranks]
    return DraftVocabulary(tuple(range(VOCAB_SIZE)), tuple(fits), tuple(preference))


def reduced_vocabulary(size: int = 600) -> DraftVocabulary:
    """``size`` tokens of the full vocabulary in rising order, as trainers write it."""
    kept = random.Random(_SEED + 2).sample(range(VOCAB_SIZE), size)
    return full_vocabulary().rows(sorted(kept))


def permuted_vocabulary() -> DraftVocabulary:
    """The full vocabulary with its rows in another order: only the map can tell."""
    order = random.Random(_SEED + 3).sample(range(VOCAB_SIZE), VOCAB_SIZE)
    return full_vocabulary().rows(order)

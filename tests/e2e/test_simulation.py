# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""The expected counts are worth comparing with: any change of the map changes them."""

import pytest

from .cases import GROUPS
from .features import FEATURE_SIZE, draft_head, states, target_head
from .language import (
    LANGUAGE,
    VOCAB_SIZE,
    DraftVocabulary,
    full_vocabulary,
    permuted_vocabulary,
    reduced_vocabulary,
)
from .simulation import Request, accepted_prefix, propose, simulate

REQUESTS = GROUPS["v1"].requests
REDUCED = reduced_vocabulary()


def test_the_language_is_one_cycle_through_all_tokens():
    token, seen = LANGUAGE.token_at[0], set()
    while token not in seen:
        seen.add(token)
        token = LANGUAGE.successor(token)
    assert len(seen) == VOCAB_SIZE
    assert len({LANGUAGE.features(token) for token in seen}) == VOCAB_SIZE


def test_a_perfect_draft_gets_everything_accepted():
    """No token misled: each step brings four tokens, and the ends are known."""
    request = Request(prompt=(5, LANGUAGE.token_at[0]), max_tokens=10)
    counts = simulate(full_vocabulary(misled_share=0.0), [request])
    # One token from the prompt, then 4 + 4 make 9, and a third step for the last.
    assert counts.num_drafts == 3
    assert counts.num_draft_tokens == 9
    assert counts.num_accepted_tokens == 9
    assert counts.num_accepted_tokens_per_pos == (3, 3, 3)


def test_a_misled_token_ends_acceptance_where_it_stands():
    """The walk below is by hand, along the first places of the cycle."""
    vocabulary = full_vocabulary()
    misled = {k for k, fit in enumerate(vocabulary.fits) if fit != k}
    for place in range(1, 60):
        previous, newest, *truth = LANGUAGE.token_at[place - 1 : place + 4]
        accepted = accepted_prefix(propose(vocabulary, previous, newest), truth)
        untouched = [token not in misled for token in truth]
        assert accepted == (untouched + [False]).index(False)


def test_reduced_vocabulary_never_proposes_what_it_left_out():
    kept = set(REDUCED.target_ids)
    for place in range(1, 200):
        previous, newest = LANGUAGE.token_at[place - 1], LANGUAGE.token_at[place]
        assert kept.issuperset(propose(REDUCED, previous, newest))


def test_row_order_alone_changes_nothing():
    assert simulate(permuted_vocabulary(), REQUESTS) == simulate(
        full_vocabulary(), REQUESTS
    )


def _wrong_maps() -> dict[str, tuple[DraftVocabulary, list[int]]]:
    permuted = permuted_vocabulary()
    kept = list(REDUCED.target_ids)
    return {
        "reduced ids taken as target ids": (REDUCED, list(range(len(kept)))),
        "offsets taken as target ids": (REDUCED, REDUCED.offsets),
        "reduced map shifted by one row": (REDUCED, kept[1:] + kept[:1]),
        "reduced map off by one id": (
            REDUCED,
            [(token + 1) % VOCAB_SIZE for token in kept],
        ),
        "permutation ignored": (permuted, list(range(VOCAB_SIZE))),
        "permutation inverted": (permuted, _inverse(permuted.target_ids)),
    }


def _inverse(permutation: tuple[int, ...]) -> list[int]:
    return sorted(range(len(permutation)), key=permutation.__getitem__)


@pytest.mark.parametrize("mistake", _wrong_maps())
def test_a_wrong_map_changes_the_counts(mistake):
    vocabulary, wrong = _wrong_maps()[mistake]
    right = simulate(vocabulary, REQUESTS)
    assert simulate(vocabulary.with_target_ids(wrong), REQUESTS) != right


def test_a_single_wrong_entry_changes_the_counts():
    """Whichever entry it is, provided that its token is ever accepted.

    One answer of 60 tokens, so that the walk can be repeated for each entry. The
    last step may accept three tokens more than are asked for.
    """
    requests = [Request(prompt=(LANGUAGE.token_at[0],), max_tokens=60)]
    right = simulate(REDUCED, requests)
    spoken = LANGUAGE.continuation(requests[0].prompt[-1], 60 + 3)
    changed = 0
    for draft_id, token in enumerate(REDUCED.target_ids):
        if token not in spoken:
            continue
        wrong = list(REDUCED.target_ids)
        wrong[draft_id] = (token + 1) % VOCAB_SIZE
        changed += simulate(REDUCED.with_target_ids(wrong), requests) != right
    assert changed >= right.num_accepted_tokens


def test_heads_score_as_the_simulation_does():
    """Hidden states times head rows give 32 points per feature plus preference."""
    tokens = list(range(0, VOCAB_SIZE, 31))
    logits = states(tokens) @ target_head().T
    expected = [LANGUAGE.successor(token) for token in tokens]
    assert logits.argmax(1).tolist() == expected
    top = logits.topk(2).values
    assert top[:, 0].tolist() == [2.0 * FEATURE_SIZE] * len(tokens)
    assert top[:, 1].tolist() == [1.0 * FEATURE_SIZE] * len(tokens)

    rows = draft_head(REDUCED)
    for token, points in zip(tokens, states(tokens) @ rows.T, strict=True):
        first, second = LANGUAGE.features(LANGUAGE.successor(token))
        assert REDUCED.target_ids[int(points.argmax())] == REDUCED.best(first, second)


def test_requests_differ_in_length_and_spread_over_the_cycle():
    for group in GROUPS.values():
        requests = group.requests
        assert len({len(request.prompt) for request in requests}) > 3
        assert len({request.max_tokens for request in requests}) == len(requests)
    covered = {token for request in REQUESTS for token in request.expected_output}
    assert len(covered) > 0.8 * VOCAB_SIZE

"""Texts laid out as samples: no token is lost, and packing changes no target."""

from collections import Counter

import torch
from hypothesis import given
from hypothesis import strategies as st

from workers.data.ragged import PAD_TARGET
from workers.data.texts.documents import Document
from workers.data.texts.stretches import Stretches, stretches
from workers.data.texts.wanted import positions

DOCUMENTS = st.lists(
    st.lists(st.tuples(st.integers(1, 9), st.booleans()), max_size=12), min_size=1, max_size=6
).map(lambda texts: [Document([t for t, _ in text], [c for _, c in text]) for text in texts])


def rows(found: Stretches, values: torch.Tensor, length: int) -> list[list[int]]:
    """The samples without what fills them up."""
    whole = found.rows(values, torch.arange(len(found)), length, -7)
    return [[v for v in row if v != -7] for row in whole.tolist()]


def expected(documents: list[Document]) -> list[tuple[int, int]]:
    """Each token and what is to follow it, text by text."""
    pairs = []
    for each in documents:
        counted = [t if c else PAD_TARGET for t, c in zip(each.tokens, each.counts, strict=True)]
        pairs += zip(each.tokens, [*counted[1:], PAD_TARGET], strict=False)
    return pairs


@given(DOCUMENTS, st.integers(1, 7))
def test_packing_keeps_every_token_and_every_target_in_order(documents, length: int) -> None:
    found = stretches(documents, length, is_packed=True)
    tokens = [t for row in rows(found, found.tokens, length) for t in row]
    labels = [t for row in rows(found, found.labels, length) for t in row]
    assert [*zip(tokens, labels, strict=True)] == expected(documents)
    assert all(size == length for size in found.lengths.tolist()[:-1])


@given(DOCUMENTS)
def test_packed_targets_are_those_of_each_text_alone(documents) -> None:
    alone, packed = (stretches(documents, 12, is_packed=p) for p in (False, True))
    assert len(alone) == sum(bool(each.tokens) for each in documents)
    told = [Counter(v for row in rows(s, s.labels, 12) for v in row) for s in (alone, packed)]
    assert told[0] == told[1]


@given(DOCUMENTS, st.integers(1, 7))
def test_only_samples_with_a_useful_token_stay(documents, length: int) -> None:
    found = stretches(documents, length, is_packed=True)
    kept = found.only(found.labels >= 0)
    wanted = [row for row in rows(found, found.labels, length) if max(row) >= 0]
    assert rows(kept, kept.labels, length) == wanted


@given(st.lists(st.integers(0, 3), min_size=1, max_size=9))
def test_positions_begin_again_with_each_text(numbers: list[int]) -> None:
    told, place, before = [], 0, None
    for number in numbers:
        place = place + 1 if number == before else 0
        told.append(place)
        before = number
    assert positions(torch.tensor([numbers])).tolist() == [told]

"""Shares of replicas: the greedy rule beside brute force, the pattern, and programs of them."""

from dataclasses import replace
from itertools import pairwise, product
from math import lcm

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from backend.errors import InvalidInput
from backend.pipeline.held import in_flight
from backend.pipeline.lower import lower
from backend.pipeline.schedules.catalog import SCHEDULES, schedule
from backend.pipeline.shape import Shape
from backend.pipeline.shares import pattern, shares
from backend.pipeline.verify import verify

SECONDS = st.lists(st.sampled_from([0.25, 0.5, 1.0, 1.5, 2.0, 3.7]), min_size=1, max_size=4)
COUNTS = st.lists(st.integers(1, 5), min_size=1, max_size=4).map(tuple)
TAKERS = [name for name, rule in SCHEDULES.items() if rule.takes_shares and not rule.is_v]


@given(SECONDS, st.integers(0, 12))
def test_no_shares_end_sooner_than_the_greedy_ones(seconds, num_microbatches):
    found = shares(seconds, num_microbatches)
    every = (
        n for n in product(range(num_microbatches + 1), repeat=len(seconds))
        if sum(n) == num_microbatches
    )  # fmt: skip
    ends = (max(n * c for n, c in zip(each, seconds, strict=True)) for each in every)
    assert sum(found) == num_microbatches
    assert max(n * c for n, c in zip(found, seconds, strict=True)) == min(ends)


def test_shares_are_those_of_the_formula():
    """T = C m / sum of speeds."""
    assert shares([1.0, 0.5], 12) == (4, 8)
    assert shares([1.0, 1.0, 0.25], 12) == (2, 2, 8)


@given(COUNTS)
def test_a_pattern_gives_each_its_share_and_equal_ones_in_turn(counts):
    found = pattern(counts)
    rounds = sum(counts) // len(found)
    assert tuple(found.count(i) * rounds for i in range(len(counts))) == counts
    assert pattern((counts[0],) * len(counts)) == tuple(range(len(counts)))


@given(COUNTS)
def test_a_pattern_is_even(counts):
    """Between two microbatches of a replica no other one has more than its share of that time,
    and one."""
    found = pattern(counts) * 2
    for replica, own in enumerate(counts):
        places = [place for place, taker in enumerate(found) if taker == replica]
        for first, second in pairwise(places):
            for other, count in enumerate(counts):
                between = found[first + 1 : second].count(other)
                assert between <= -(-count // own)


@st.composite
def shapes(draw, batches_of: int = 1):
    every = tuple(draw(st.lists(COUNTS, min_size=1, max_size=4)))
    rounds = lcm(*(len(pattern(own)) for own in every))
    batch = rounds * batches_of * draw(st.integers(1, 2))
    assume(batch <= 240)
    replicas = tuple(map(len, every))
    return Shape(replicas, batch * draw(st.integers(1, 3)), batch, shares=every)


@pytest.mark.parametrize("name", TAKERS)
@settings(max_examples=40, deadline=None)
@given(shape=shapes())
def test_programs_of_any_shares_are_sound_and_hold_what_is_promised(name, shape):
    rule = schedule(name)
    try:
        program = lower(rule, shape)
    except InvalidInput:
        assert name == "2bw"
        return
    assert verify(program) == ()
    for coordinates in shape.coordinates:
        held = in_flight(program.part(coordinates.rank))
        assert max(held, default=0) == rule.in_flight(coordinates)
        for microbatch in coordinates.microbatches:
            assert shape.rank_of(coordinates.pipeline_rank, microbatch) == coordinates.rank


@settings(max_examples=40, deadline=None)
@given(shape=shapes(batches_of=4))
def test_2bw_keeps_two_versions_where_a_batch_is_long_enough(shape):
    try:
        program = lower(schedule("2bw"), shape)
    except InvalidInput:
        assume(False)
    assert verify(program) == ()


@given(shape=shapes())
def test_equal_shares_are_the_program_of_no_shares(shape):
    batch = shape.batch * lcm(*shape.replicas)
    every = tuple((3,) * count for count in shape.replicas)
    equal = Shape(shape.replicas, 2 * batch, batch, shares=every)
    plain = replace(equal, shares=())
    for name in ("1f1b-flush", "zb-h1", "gpipe"):
        one, other = (lower(schedule(name), each) for each in (equal, plain))
        assert one.rows == other.rows
        assert [c.in_flight for c in equal.coordinates] == [c.in_flight for c in plain.coordinates]


@pytest.mark.parametrize(
    ("shares", "more", "message"),
    [
        (((2, 1),), {}, "1 pipeline ranks have shares"),
        (((2,), ()), {}, "shares 2 are not those of the 2 replicas at pipeline rank 0"),
        (((2, 0), ()), {}, "shares 2:0 are not those"),
        (((4096, 1), ()), {}, "a round at most"),
        (((2, 1), ()), {"chunks": 2}, "not for several chunks"),
        (((4, 1), ()), {}, "cannot be shared evenly by the 2 replicas .* in rounds of 5"),
    ],
)
def test_shares_that_are_none_are_refused(shares, more, message):
    with pytest.raises(InvalidInput) as refused:
        Shape((2, 1), 12, 6, shares=shares, **more)
    assert refused.match(message) or message in refused.value.advice


def test_schedules_of_rounds_take_no_shares():
    shape = Shape((2, 1), 6, 1, shares=((2, 1), ()))
    with pytest.raises(InvalidInput, match="unequal shares have no such rounds"):
        lower(schedule("pipedream"), shape)

"""The program of one group of replicas is that group's part of the whole program."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from backend.errors import InvalidInput
from backend.pipeline.kinds import Is
from backend.pipeline.lower import lower
from backend.pipeline.replica_groups import ALL, ReplicaGroups, possible_groups
from backend.pipeline.schedules.catalog import SCHEDULES
from backend.pipeline.shape import Shape


@st.composite
def cases(draw):
    """A schedule, a shape that it admits and has groups, and these."""
    member = draw(st.sampled_from(list(SCHEDULES.values())))
    most = draw(st.integers(2, 6))
    replicas = tuple(most * n for n in draw(st.lists(st.integers(1, 3), min_size=1, max_size=3)))
    batch = draw(st.sampled_from([1, 6, 12, 24, 60])) if member.batched else 1
    one_way = (0,) if len(replicas) > 1 and draw(st.booleans()) else ()
    options = {"recompute": draw(st.booleans()), "one_way": one_way}
    options["run_ahead"] = draw(st.integers(0, 2)) if member.runs_ahead else 0
    try:
        shape = Shape(replicas, 720, batch, **options)
        member.check(shape)
    except InvalidInput:
        assume(False)
    found = possible_groups(member.name, shape)
    assume(found)
    return member, shape, draw(st.sampled_from(found))


@settings(max_examples=120, deadline=None)
@given(case=cases(), data=st.data())
def test_a_group_does_its_part_of_the_whole(case, data):
    member, shape, groups = case
    whole, one = lower(member, shape), lower(member, groups.one(shape, member.batched))
    group = data.draw(st.integers(0, groups.count - 1))
    shift = group * groups.width
    ranks = [rank + shift for rank in groups.ranks(shape)]
    assert len(ranks) == one.num_ranks == shape.num_ranks // groups.count
    own, turn = one.rows.microbatch % groups.width, one.rows.microbatch // groups.width
    microbatch = np.where(one.rows.microbatch < 0, -1, own + shift + turn * groups.modulus)
    peers = np.where(one.rows.are(Is.MESSAGE), np.array(ranks)[one.rows.peer], -1)
    for number, rank in enumerate(ranks):
        mine, part = slice(*one.bounds[number : number + 2]), whole.part(rank)
        for name in ("kind", "stage", "version"):
            assert np.array_equal(getattr(one.rows, name)[mine], getattr(part, name))
        assert np.array_equal(microbatch[mine], part.microbatch)
        assert np.array_equal(peers[mine], np.where(part.are(Is.MESSAGE), part.peer, -1))
        sums = part.peer[part.are(Is.COLLECTIVE)]
        assert all(rank in part.groups[each] for each in sums)
    assert groups.all(one.shape, member.batched) == whole.shape


def test_groups_of_a_replica_and_two_or_of_twice_as_many():
    shape = Shape((4, 8), 16)
    assert possible_groups("pipedream", shape) == [ReplicaGroups(2, 4), ReplicaGroups(2, 2)]
    assert ReplicaGroups(4, 4).ranks(shape) == (0, 4, 8)
    assert ReplicaGroups(2, 4).ranks(shape) == (0, 1, 4, 5, 8, 9)
    assert ReplicaGroups(2, 2).ranks(shape) == (0, 2, 4, 6, 8, 10)


@pytest.mark.parametrize(
    ("name", "shape"),
    [
        ("pipedream", Shape((15, 1), 30)),
        ("pipedream", Shape((2, 2), 8)),
        ("1f1b-flush", Shape((4, 4), 12, 3)),
        ("1f1b-flush", Shape((4, 4), 24, 6, shares=((1, 2, 1, 2), (1, 1, 2, 2)))),
        ("afp", Shape((4, 4), 16, 4, num_pipelines=2)),
        ("interleaved", Shape((4, 4), 16, 8, chunks=2)),
        ("forward-only", Shape((4, 4), 16)),
    ],
)
def test_none_where_replicas_do_not_share_evenly(name, shape):
    assert possible_groups(name, shape) == []


def test_all_are_one_group():
    shape = Shape((3, 6), 12)
    assert ALL.one(shape, True) == ALL.all(shape, True) == shape
    assert ALL.ranks(shape) == tuple(range(9))

"""One group of replicas that are alike, beside the simulation of all of them: to the bit."""

import random
from dataclasses import replace
from itertools import accumulate, pairwise

import numpy as np
import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

import backend.prediction.alike_groups as module
from backend.cluster.cluster import Cluster, Device, Level
from backend.errors import StageflowError
from backend.pipeline.replica_groups import ALL, ReplicaGroups
from backend.pipeline.schedules.catalog import schedule
from backend.planning.plan import Partition, Plan, Stage
from backend.prediction.alike_groups import AlikeGroups
from backend.prediction.device_moves import in_turn
from backend.prediction.predict import predict
from backend.prediction.segment import segment
from backend.prediction.shapes import steady_shape
from backend.prediction.steady import durations_in, on_cluster
from backend.profiles.layer import Layer
from backend.profiles.profile import ModelGraph, Profile

CLUSTERS = {
    "one level": Cluster((Level(16, 8.0),)),
    "two levels": Cluster((Level(4, 8.0), Level(4, 4.0))),
    "three levels": Cluster((Level(2, 16.0), Level(2, 8.0), Level(4, 4.0))),
    "far": Cluster((Level(2, 16.0), Level(2, 8.0), Level(4, 4.0, 0.25))),
}
SCHEDULES = ("pipedream", "pipedream-vertical-sync", "2bw", "1f1b-flush", "gpipe", "zb-h1")


def drawn(count, seed, whole):
    """Layers whose seconds and bytes are small whole numbers, so that much happens at once, or
    hardly ever are the same."""
    chance = random.Random(seed)

    def number(most):
        return chance.randint(0, most) if whole else chance.uniform(0, most)

    layers = (
        Layer(
            f"l{n}", "x", 1 + number(3), 1 + number(3), int(8 * number(4)), int(2**21 * number(3))
        )
        for n in range(count)
    )
    return Profile("drawn", ModelGraph.chain(tuple(layers)), 4)


def placed(replicas, cluster, how, seed):
    """A layer on each stage; devices follow each other, those of each stage in turn over the
    machines, or as it comes."""
    devices = list(range(cluster.num_devices))
    if how == "as it comes":
        random.Random(seed).shuffle(devices)
    if how == "the last first":
        devices.reverse()
    if how == "spread":
        devices = list(in_turn(tuple(devices), cluster))
    ends = pairwise(accumulate(replicas, initial=0))
    parts = (tuple(devices[start:stop]) for start, stop in ends)
    if how == "in turn":
        parts = (in_turn(part, cluster) for part in parts)
    return Partition(tuple(Stage(n, n + 1, part) for n, part in enumerate(parts)))


@st.composite
def cases(draw):
    cluster = CLUSTERS[draw(st.sampled_from(list(CLUSTERS)))]
    each = [(8, 8), (4, 8), (4, 4, 8), (4, 12), (8, 4), (16,), (6, 6), (4, 4, 4, 4), (2, 6), (8, 2)]
    how = draw(st.sampled_from(["as they are", "spread", "in turn", "the last first"]))
    replicas, seed = draw(st.sampled_from(each)), draw(st.integers(0, 999))
    profile = drawn(len(replicas), seed, draw(st.booleans()))
    name = draw(st.sampled_from(SCHEDULES))
    batch = draw(st.sampled_from([8, 24, 48])) if schedule(name).batched else 1
    partition = placed(replicas, cluster, how, seed)
    plan = Plan("", partition, name, 4, batch, recompute=draw(st.booleans()))
    return profile, cluster, replace(plan, shard_state=draw(st.booleans()))


def looked_at(profile, cluster, plan):
    """The plan's shape, its groups, and the seconds of its actions."""
    shape = steady_shape(plan)
    durations = durations_in(shape, profile, cluster, plan)
    return shape, AlikeGroups.of(durations, plan, shape)


@settings(max_examples=150, deadline=None)
@given(case=cases())
def test_every_group_does_what_the_first_one_does(case):
    profile, cluster, plan = case
    shape, alike = looked_at(profile, cluster, plan)
    try:
        whole = segment(plan.schedule, shape).program
    except StageflowError:
        return
    groups = alike.groups
    event(f"{groups.count} groups, shared links {alike.is_shared}")
    one = segment(plan.schedule, shape, groups).program
    found, (full, _) = alike.timeline(one), on_cluster(whole, profile, cluster, plan)
    for group in range(groups.count):
        for number, rank in enumerate(groups.ranks(shape)):
            mine = slice(*one.bounds[number : number + 2])
            first = rank + group * groups.width
            theirs = slice(*whole.bounds[first : first + 2])
            assert np.array_equal(found.rows.kind[mine], full.rows.kind[theirs])
            assert np.array_equal(found.start[mine], full.start[theirs])
            assert np.array_equal(found.end[mine], full.end[theirs])


def by_all(profile, cluster, plan):
    """The same prediction where no groups are looked for."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(module, "possible_groups", lambda *_: [])
        return predict(profile, cluster, plan)


@settings(max_examples=60, deadline=None)
@given(case=cases())
def test_predictions_are_those_of_all_ranks(case):
    """But for the share of waiting, a sum over ranks whose last digits depend on their number."""
    profile, cluster, plan = case
    try:
        whole = by_all(profile, cluster, plan)
    except StageflowError as fault:
        with pytest.raises(type(fault)):
            predict(profile, cluster, plan)
        return
    found = predict(profile, cluster, plan)
    assert found.bubble == pytest.approx(whole.bubble, abs=1e-12)
    assert replace(found, bubble=whole.bubble) == whole


def groups_of(cluster, *stages, name="pipedream"):
    partition = Partition(tuple(Stage(n, n + 1, part) for n, part in enumerate(stages)))
    plan = Plan("", partition, name, 4, 16 if schedule(name).batched else 1)
    return looked_at(drawn(len(stages), 0, whole=True), cluster, plan)[1].groups


def span(start, stop):
    return tuple(range(start, stop))


def test_machines_of_their_own_make_groups():
    """Four machines of four: two hold a stage each, or all of them some of both."""
    two = CLUSTERS["two levels"]
    assert groups_of(two, span(0, 8), span(8, 16)) == ReplicaGroups(2, 8)
    assert groups_of(two, span(0, 8), span(8, 16), name="gpipe") == ReplicaGroups(2, 8)
    halves = in_turn(tuple(d for d in range(16) if d % 4 < 2), two)
    others = in_turn(tuple(d for d in range(16) if d % 4 > 1), two)
    assert groups_of(two, halves, others) == ReplicaGroups(4, 4)


def test_on_links_of_their_own_any_replicas_make_groups():
    assert groups_of(CLUSTERS["one level"], span(0, 8), span(8, 16)) == ReplicaGroups(4, 8)
    assert groups_of(CLUSTERS["three levels"], span(0, 16)) == ReplicaGroups(8, 16)


UNALIKE = {
    "unequal devices": (
        Cluster((Level(4, 8.0), Level(4, 4.0)), Device(), (Device(),) * 15 + (Device(speed=2.0),)),
        (span(0, 8), span(8, 16)),
    ),
    "cores that are shared": (
        Cluster((Level(4, 8.0, cores=2), Level(4, 4.0))),
        (span(0, 8), span(8, 16)),
    ),
    "a machine in which two groups have replicas": (
        CLUSTERS["two levels"],
        (span(0, 6), span(6, 12)),
    ),
    "links of other levels": (CLUSTERS["three levels"], (span(0, 6), span(6, 12))),
    "a replica elsewhere": (CLUSTERS["two levels"], ((*span(0, 7), 12), span(8, 12))),
}


@pytest.mark.parametrize("what", UNALIKE)
def test_what_is_not_alike_is_simulated_as_a_whole(what):
    cluster, stages = UNALIKE[what]
    assert groups_of(cluster, *stages) == ALL


def test_a_ring_that_meets_messages_of_its_own_stage_is_simulated_as_a_whole():
    """Stage 0 is in every machine, and hands on to the second half of the next one but one: into
    each come its messages, and its ring from another group."""
    two = CLUSTERS["two levels"]
    here = (0, 1, 4, 5, 8, 9, 12, 13)
    there = (6, 7, 2, 3, 14, 15, 10, 11)
    assert groups_of(two, here, there) == ALL

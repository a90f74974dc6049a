"""What ranks computed beside their plan, on timelines whose factors are known."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from backend.cluster.cluster import Cluster, Device, Level
from backend.comparison.stragglers import ENOUGH, SLOW, MeasuredSegment, Paces, paces
from backend.comparison.within import within
from backend.pipeline.kinds import Kind
from backend.pipeline.timeline import Timeline
from backend.planning.plan import Partition, Plan, Stage
from backend.prediction.predict import predicted_durations, predicted_program
from tests.app.seed import a_profile

PROFILE = a_profile()
CLUSTER = Cluster((Level(3, 1e10),))
PARTITION = Partition((Stage(0, 6, (0, 1)), Stage(6, 16, (2,))))
PLAN = Plan("straight", PARTITION, "1f1b-flush", batch=2, microbatch=PROFILE.microbatch)
NUMBER = 2 * ENOUGH
"""Microbatches of `ENOUGH` minibatches."""
FACTOR = st.floats(0.5, 4.0)


def a_segment(factors: tuple[float, ...], number: int = NUMBER) -> MeasuredSegment:
    """The predicted timeline, where each rank takes so many times as long for each action."""
    _, whole = predicted_program(PROFILE, CLUSTER, PLAN, number)
    longer = np.array(factors)[whole.rank] * whole.seconds
    return MeasuredSegment(replace(whole, end=whole.start + longer))


def judged(*segments: MeasuredSegment, taken: dict[int, float] | None = None) -> Paces | None:
    return paces(segments, predicted_durations(PROFILE, CLUSTER, PLAN), PLAN, taken or {})


@settings(max_examples=20)
@given(st.tuples(FACTOR, FACTOR, FACTOR))
def test_each_ranks_factor_is_found(factors: tuple[float, ...]) -> None:
    found = judged(a_segment(factors))
    assert found is not None
    assert [pace.slowdown for pace in found.ranks] == pytest.approx(factors)
    assert [pace.device for pace in found.ranks] == [0, 1, 2]
    named = {pace.rank for pace in found.stragglers}
    assert factors.index(min(factors)) not in named
    if min(factors) >= 1.0:
        assert found.are_all_slow == (min(pace.slowdown for pace in found.ranks) >= SLOW)


@pytest.mark.parametrize(
    ("factors", "named"),
    [
        ((1.0, 1.0, 1.2), []),
        ((1.0, 1.0, 1.3), [2]),
        ((1.0, 2.0, 2.1), [2, 1]),
        ((0.7, 1.0, 1.0), []),  # one is faster: the others are as planned
        ((0.5, 0.5, 1.0), [2]),  # the profile was slower than the devices are
        ((1.6, 1.6, 1.7), []),  # the profile was faster
        ((1.6, 1.6, 2.1), [2]),
    ],
)
def test_who_is_slow_beside_the_plan_and_the_others(
    factors: tuple[float, ...], named: list[int]
) -> None:
    found = judged(a_segment(factors))
    assert found is not None
    assert [pace.rank for pace in found.stragglers] == named


def test_the_cluster_has_the_speeds_that_were_measured() -> None:
    found = judged(a_segment((1.0, 2.0, 1.04)))
    assert found is not None
    assert [device.speed for device in found.cluster.each] == [1.0, 0.5, 1.0]
    assert found.is_measured
    as_planned = judged(a_segment((1.0, 1.0, 1.0)))
    assert as_planned is not None
    assert as_planned.cluster == CLUSTER
    assert not as_planned.is_measured


def test_devices_that_are_slow_alike_are_one_kind() -> None:
    found = judged(a_segment((2.0, 2.0, 2.0)))
    assert found is not None
    assert found.are_all_slow
    assert not found.stragglers
    assert (found.cluster.device.speed, found.cluster.devices) == (0.5, ())


def test_what_others_had_of_a_core_is_no_fault_of_its_rank() -> None:
    found = judged(a_segment((1.0, 2.0, 1.0)), taken={1: 0.5})
    assert found is not None
    assert not found.stragglers


def test_a_few_long_minibatches_make_no_rank_slow() -> None:
    calm = a_segment((1.0, 1.0, 1.0))
    of = calm.measured
    stalled = (of.rank == 2) & (of.rows.microbatch >= 0) & (of.rows.microbatch < 20)
    end = np.where(stalled, of.start + 50 * of.seconds, of.end)
    found = judged(MeasuredSegment(replace(of, end=end)))
    assert found is not None
    assert found.ranks[2].slowdown == pytest.approx(1.0)


def test_loading_samples_within_a_forward_is_no_compute() -> None:
    calm = a_segment((1.0, 1.0, 1.0)).measured
    forwards = (calm.rows.kind == Kind.FORWARD) & (calm.rank == 0)
    late = replace(calm, end=np.where(forwards, calm.end + 1.0, calm.end))
    loads = late.at(forwards)
    loads = replace(loads, start=loads.end - 1.0)
    unaware, aware = judged(MeasuredSegment(late)), judged(MeasuredSegment(late, (loads,)))
    assert unaware is not None
    assert aware is not None
    assert [pace.rank for pace in unaware.stragglers] == [0]
    assert not aware.stragglers
    assert aware.ranks[0].slowdown == pytest.approx(1.0, rel=1e-6)


def test_the_newest_segments_that_hold_enough_are_judged() -> None:
    slow, calm = a_segment((1.0, 1.0, 3.0), 60), a_segment((1.0, 1.0, 1.0), 60)
    found = judged(calm, calm, slow)
    assert found is not None
    assert found.minibatches == 60
    assert not found.stragglers
    assert judged(slow) is None  # 30 minibatches


def test_minibatches_of_microseconds_are_not_judged() -> None:
    fast = replace(CLUSTER, device=Device(speed=1000.0))
    durations = predicted_durations(PROFILE, fast, PLAN)
    assert paces([a_segment((1.0, 1.0, 3.0))], durations, PLAN, {}) is None


def test_pipelines_that_share_devices_are_not_judged() -> None:
    durations = predicted_durations(PROFILE, CLUSTER, PLAN)
    several = replace(PLAN, num_pipelines=2)
    assert paces([a_segment((1.0, 1.0, 3.0))], durations, several, {}) is None


def test_parts_of_no_action_count_nowhere() -> None:
    calm = a_segment((1.0, 1.0, 1.0), 4).measured
    ahead = replace(calm.at(slice(0, 3)), start=np.full(3, -2.0), end=np.full(3, -1.0))
    place, seconds = within(calm, ahead)
    assert len(place) == len(seconds) == 0
    assert [len(found) for found in within(Timeline.of(()), ahead)] == [0, 0]

"""Segments that are simulated until finish times repeat, against much longer ones."""

import random
from dataclasses import replace
from math import lcm

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from backend.cluster.cluster import Cluster, Level
from backend.errors import StageflowError
from backend.pipeline.bubbles import bubble
from backend.pipeline.kinds import Is
from backend.pipeline.lower import lower
from backend.pipeline.schedules.catalog import SCHEDULES, schedule
from backend.pipeline.shape import Shape
from backend.planning.plan import Partition, Plan, Stage
from backend.prediction.bottleneck import drains
from backend.prediction.candidates import every_plan
from backend.prediction.question import Question
from backend.prediction.search import search
from backend.prediction.segment import segment
from backend.prediction.shapes import (
    LONG,
    microbatch_unit,
    steady_shape,
    with_one_way,
    with_short_rounds,
)
from backend.prediction.steady import (
    lengths,
    on_cluster,
    repetition,
    seconds_per_microbatch,
    steady,
)
from backend.prediction.weight_update_cost import weight_update_costs
from backend.profiles.layer import Layer
from backend.profiles.profile import ModelGraph, Profile


def drawn(count: int, seed: int) -> Profile:
    chance = random.Random(seed)
    layers = (
        Layer(
            f"l{n}",
            "Linear",
            chance.uniform(1e-4, 1e-2),
            chance.uniform(1e-4, 2e-2),
            int(chance.uniform(1e5, 1e7)),
            int(chance.uniform(1e4, 1e7)),
        )
        for n in range(count)
    )
    return Profile("drawn", ModelGraph.chain(tuple(layers)), 4)


CLUSTERS = (
    Cluster((Level(6, 1e9),)),
    Cluster((Level(2, 1e9, 1e-4), Level(3, 1e8, 1e-3))),
    Cluster((Level(4, 1e9, cores=2),)),
)


@settings(max_examples=12)
@given(st.integers(3, 9), st.integers(0, 99), st.sampled_from(CLUSTERS), st.integers(1, 6))
@example(6, 6, CLUSTERS[2], 1)  # fills for more than 12 microbatches
@example(7, 83, CLUSTERS[2], 1)  # repeats after five units
def test_what_repeats_goes_on_to_repeat(num_layers, seed, cluster, batch):
    """The pace of a short segment is that in the middle of one that is much longer, and its share
    of waiting is that of the whole."""
    question = Question(drawn(num_layers, seed), cluster, batch=batch)
    every = [plan for plan in every_plan(question) if plan.partition.num_devices > 1]
    for plan in random.Random(seed).sample(every, min(6, len(every))):
        profile = question.at(plan.microbatch)
        whole = with_one_way(steady_shape(plan), profile, plan.partition)
        try:
            schedule(plan.schedule).check(whole)
        except StageflowError:
            continue
        found = steady(profile, cluster, plan, whole)
        short = found.segment.shape.num_microbatches
        if short == lengths(whole, microbatch_unit(plan), drains(plan.schedule))[-1]:
            continue
        unit = microbatch_unit(plan)
        repeats, seconds = repetition(found.timeline, found.segment, unit)
        assert found.seconds == seconds > 0
        # a quarter of it is longer than any of these take to fill; it drains in the same phase
        more = -(-(8 * 12 * unit + whole.num_microbatches - short) // (repeats * unit))
        long = replace(whole, num_microbatches=short + more * repeats * unit)
        timeline, _ = on_cluster(segment(plan.schedule, long).program, profile, cluster, plan)
        assert seconds == pytest.approx(in_the_middle(timeline, long, repeats * unit)), plan
        assert found.bubble(long) == pytest.approx(bubble(timeline), abs=1e-6), plan


def in_the_middle(timeline, shape, some):
    """Seconds per microbatch of the last stage over a whole number of `some` of them, long after
    the pipeline has filled and before it drains (where cores that others leave speed it up)."""
    rows, last = timeline.rows, shape.num_stages - 1
    from_, to = (shape.num_microbatches // some * part // 4 * some for part in (1, 3))
    ends = []
    for stop in (from_, to):
        done = rows.are(Is.LEARNING) & (rows.stage == last) & (rows.microbatch < stop)
        ends.append(timeline.end[done].max())
    return (ends[1] - ends[0]) / (to - from_)


def test_a_pipeline_that_flushes_settles_after_few_of_its_batches():
    plan = Plan("", Partition(tuple(Stage(n, n + 1, (n,)) for n in range(6))), "gpipe", 4, 4)
    profile = drawn(6, 0)
    found = steady(profile, CLUSTERS[0], plan, steady_shape(plan))
    assert found.segment.shape.num_microbatches == 5 * plan.batch


def test_slow_settling_is_waited_for():
    """Eight stages that are almost alike: the second half of 64 microbatches is not yet steady."""
    layers = tuple(Layer(f"l{n}", "Linear", 1 + n / 50, 2.0, 10, 0) for n in range(8))
    profile = Profile("p", ModelGraph.chain(layers), 1)
    cluster = Cluster((Level(8, 8.0),))
    plan = Plan("", Partition(tuple(Stage(n, n + 1, (n,)) for n in range(8))), "pipedream", 1)
    whole = steady_shape(plan)
    found = steady(profile, cluster, plan, whole)
    long = replace(whole, num_microbatches=16 * whole.num_microbatches)
    timeline, _ = on_cluster(segment("pipedream", long).program, profile, cluster, plan)
    assert found.seconds == pytest.approx(seconds_per_microbatch(timeline, long, 1), rel=1e-3)


def test_rounds_of_a_searched_plan_are_short():
    stages = (Stage(0, 1, tuple(range(197))), Stage(1, 2, tuple(range(197, 202))))
    found = with_short_rounds(Partition((*stages, Stage(2, 3, tuple(range(202, 209))))))
    assert found.replicas == (192, 4, 6)
    assert with_short_rounds(found) == found
    assert microbatch_unit(Plan("", found, "pipedream", 1)) <= LONG * found.num_devices


@pytest.mark.parametrize("levels", [((64, 1e9),), ((8, 12e9), (32, 1.25e9))])
def test_best_simulates_few_of_its_candidates_on_many_devices(levels):
    """Plans that drain at every update are bounded by what draining costs: most are not asked."""
    cluster = Cluster(tuple(Level(*level) for level in levels))
    asked: list[int] = []
    question = Question(replace(drawn(100, 0), microbatch=8), cluster)

    class Counted(Question):
        def predict(self, plan):
            asked.append(plan.partition.num_devices)
            return super().predict(plan)

    counted = Counted(question.profile, cluster)
    best = search("best", counted).samples_per_second
    assert 0 < len(asked) <= 150
    assert best >= search("pipedream", question).samples_per_second * (1 - 1e-9)


def test_a_front_stage_that_runs_ahead_is_not_taken_for_the_pipeline():
    """No gradient comes back to it, so it repeats while the others stand still in a sum."""
    layers = Layer("front", "Linear", 0.0, 1.0, 3, 2), Layer("back", "Linear", 0.0, 4.0, 13, 19)
    question = Question(
        Profile("apart", ModelGraph(layers, ()), 1), Cluster((Level(4, 0.5),)), batch=4
    )
    cut = Partition((Stage(0, 1, (0,)), Stage(1, 2, (1, 2, 3), (1, 2, 1))))
    found = question.predict(Plan("by-hand", cut, "2bw", 1, 4))
    sums = 2 * (3 - 1) * 19 / 3 / 0.5
    assert found.seconds_per_minibatch >= sums


@pytest.mark.parametrize(
    ("seed", "replicas", "repeats"), [(129, (4, 2), 6), (109, (3, 3), 5)], ids=str
)
def test_what_repeats_after_several_units_is_found(seed, replicas, repeats):
    """Rings and messages on shared links: five or six rounds take unlike seconds, then the same
    come again."""
    front, back = replicas
    stages = Stage(0, 1, tuple(range(front))), Stage(1, 2, tuple(range(front, front + back)))
    plan = Plan("", Partition(stages), "pipedream", 4)
    profile, cluster, unit = drawn(2, seed), CLUSTERS[1], microbatch_unit(plan)
    whole = steady_shape(plan)
    found = steady(profile, cluster, plan, whole)
    assert repetition(found.timeline, found.segment, unit)[0] == repeats
    long = replace(whole, num_microbatches=40 * repeats * unit)
    timeline, _ = on_cluster(segment(plan.schedule, long).program, profile, cluster, plan)
    assert found.seconds == pytest.approx(in_the_middle(timeline, long, repeats * unit), rel=1e-9)


@given(st.lists(st.integers(1, 6), min_size=1, max_size=4), st.integers(0, 2))
@pytest.mark.parametrize("name", [each.name for each in SCHEDULES.values() if each.no_slower])
def test_a_schedule_that_is_no_slower_has_the_same_order_and_does_no_more(name, replicas, ahead):
    rule, other = schedule(name), schedule(schedule(name).no_slower)
    shape = Shape(tuple(replicas), 2 * lcm(*replicas), run_ahead=ahead)
    one, two = (lower(each, shape) for each in (rule, other))
    assert np.array_equal(one.bounds, two.bounds)
    for column in ("kind", "stage", "microbatch", "peer"):
        assert np.array_equal(getattr(one.rows, column), getattr(two.rows, column)), column
    costs = zip(weight_update_costs(rule, shape), weight_update_costs(other, shape), strict=True)
    for mine, its in costs:
        assert its == mine or its == replace(mine, renews=False)


@pytest.mark.parametrize("ahead", [None, 1])
def test_what_differs_in_versions_alone_is_simulated_once(ahead):
    cluster = Cluster((Level(4, 1e9),))
    asked: list[str] = []

    class Counted(Question):
        def predict(self, plan):
            asked.append(plan.schedule)
            return super().predict(plan)

    search("best", Counted(drawn(5, 1), cluster, run_ahead=ahead))
    assert "pipedream" in asked
    assert "pipedream-vertical-sync" not in asked
    synced = Counted(drawn(5, 1), cluster, schedule="pipedream-vertical-sync")
    assert search("best", synced).plan.schedule == "pipedream-vertical-sync"

"""How far plans run ahead: the formula against the simulator, what is chosen, what it costs."""

from dataclasses import replace
from math import ceil

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from backend.cluster.cluster import Cluster, Device, Level
from backend.codec import from_plain, to_plain
from backend.errors import InvalidInput
from backend.pipeline.actions import Backward, Forward
from backend.pipeline.held import staleness
from backend.pipeline.lower import lower
from backend.pipeline.schedules.catalog import SCHEDULES, schedule
from backend.pipeline.shape import Shape
from backend.pipeline.simulate import simulate
from backend.planning.plan import Partition, Plan, Stage
from backend.prediction.answer import cut_by_hand, rank, redrawn
from backend.prediction.durations import PlanDurations
from backend.prediction.question import Question
from backend.prediction.run_ahead import enough, loop_seconds
from backend.prediction.same_updates import goes_on_from
from backend.prediction.search import search
from backend.prediction.steady import seconds_per_microbatch
from backend.prediction.uniform import UniformDurations
from backend.profiles.layer import Layer
from backend.profiles.profile import ModelGraph, Profile

AHEAD = [name for name, member in SCHEDULES.items() if member.runs_ahead]


class OfStages:
    """Stages and cuts of their own seconds."""

    def __init__(self, stages, hops):
        self.stages, self.hops = stages, hops

    def compute(self, rank, action):
        forward, backward = self.stages[rank]
        return {Forward: forward, Backward: backward}.get(type(action), 0.0)

    def transfer(self, message, source, to):
        return self.hops[min(source, to)]


def simulated(name, shape, durations):
    program = lower(schedule(name), shape)
    return seconds_per_microbatch(simulate(program, durations), shape, shape.batch)


SECONDS = st.floats(0.1, 2.0)


@settings(max_examples=40, deadline=None)
@given(
    stages=st.lists(st.tuples(SECONDS, SECONDS), min_size=2, max_size=4),
    hops=st.lists(st.floats(0.0, 3.0), min_size=3, max_size=3),
    ahead=st.integers(0, 3),
)
def test_the_formula_is_the_period_of_the_simulator(stages, hops, ahead):
    """Links that carry a message at a time bound the period too. Where nothing repeats exactly the
    slope of the segment is off by its ends."""
    shape = Shape((1,) * len(stages), 400, run_ahead=ahead)
    hops = hops[: len(stages) - 1]
    loops = loop_seconds([sum(each) for each in stages], hops, shape.replicas, ahead)
    found = simulated("pipedream", shape, OfStages(stages, hops))
    assert found == pytest.approx(max(loops, *hops), rel=0.02)


@pytest.mark.parametrize("name", ["pipedream", "2bw"])
@pytest.mark.parametrize(("p", "hop"), [(2, 0.7), (3, 1.6), (4, 2.9)])
def test_equal_stages_hide_a_link_with_2c_of_f_plus_b(name, p, hop):
    needed = ceil(2 * hop / 3.0)
    durations = UniformDurations(1.0, 2.0, transfer_seconds=hop)
    batch = p + needed * (p - 1)
    shape = Shape((1,) * p, 40 * batch, batch)
    periods = [simulated(name, replace(shape, run_ahead=a), durations) for a in range(needed + 1)]
    assert periods[-1] == pytest.approx(3.0, rel=1e-3)
    assert all(period > 3.0 * 1.02 for period in periods[:-1])


@pytest.mark.parametrize("p", [1, 2, 4, 8])
@pytest.mark.parametrize("ahead", [0, 1, 3])
def test_versions_and_staleness_follow(p, ahead):
    held = [(p - s) + ahead * (p - 1 - s) for s in range(p)]
    program = lower(schedule("pipedream"), Shape((1,) * p, 60, run_ahead=ahead))
    assert staleness(program) == tuple(each - 1 for each in held)
    synced = lower(schedule("pipedream-vertical-sync"), Shape((1,) * p, 60, run_ahead=ahead))
    assert staleness(synced) == (held[0] - 1,) * p
    double = Shape((1,) * p, 4 * held[0], held[0], run_ahead=ahead)
    assert set(staleness(lower(schedule("2bw"), double))) == {1}
    for coordinates in double.coordinates:
        assert schedule("2bw").live(coordinates) == 2
        assert schedule("2bw").in_flight(coordinates) == held[coordinates.pipeline_rank]
    if p > 1:
        with pytest.raises(InvalidInput, match=f"rank 0 runs {held[0]} ahead"):
            lower(schedule("2bw"), replace(double, num_microbatches=held[0] - 1, batch=held[0] - 1))


@pytest.mark.parametrize("name", [name for name in SCHEDULES if name not in AHEAD])
def test_what_drains_takes_none(name):
    with pytest.raises(InvalidInput, match="takes no further microbatches in flight"):
        schedule(name).check(Shape((1, 1), 8, 8, run_ahead=1))


@pytest.mark.parametrize("ahead", [-1, 65])
def test_how_far_is_bounded(ahead):
    with pytest.raises(InvalidInput, match="no number of microbatches per hop"):
        Shape((1, 1), 8, run_ahead=ahead)


LAYERS = tuple(Layer(f"l{n}", "Linear", 1.0, 2.0, 10**6, 1000) for n in range(4))
PROFILE = Profile("equal", ModelGraph.chain(LAYERS), microbatch=4)


def slow(hop: float, memory: float | None = None) -> Cluster:
    """Two devices whose link takes so many seconds of a message of the profile."""
    return Cluster((Level(2, 10**6 / hop),), Device("x", memory))


def asked(hop: float, **more) -> Question:
    return Question(PROFILE, slow(hop), planner="straight", **more)


@pytest.mark.parametrize("name", ["pipedream", "2bw"])
@pytest.mark.parametrize(("hop", "ahead"), [(0.01, 0), (2.0, 1), (4.0, 2)])
def test_planners_run_as_far_ahead_as_a_link_needs(name, hop, ahead):
    """ceil(2 C / (F + B)) of equal stages: a stage computes for 6 s here."""
    found = search("straight", asked(hop, schedule=name, batch=8))
    assert found.plan.run_ahead == ahead
    plain = search("straight", asked(hop, schedule=name, batch=8, run_ahead=0))
    assert plain.plan.run_ahead == 0
    assert (found.samples_per_second > plain.samples_per_second * 1.01) == (ahead > 0)
    assert (max(found.memory_bytes) > max(plain.memory_bytes)) == (ahead > 0)
    assert found.staleness == (1 if name == "2bw" else 1 + ahead)
    assert max(found.versions) == (2 if name == "2bw" else 2 + ahead)
    durations = PlanDurations(PROFILE, plain.plan.partition, slow(hop))
    assert enough(durations, plain.plan) == ahead


def test_2bw_runs_no_further_ahead_than_its_batch_admits():
    found = search("straight", asked(4.0, schedule="2bw", batch=3))
    assert found.plan.run_ahead == 1
    with pytest.raises(InvalidInput, match="rank 0 runs 4 ahead"):
        search("straight", asked(4.0, schedule="2bw", batch=3, run_ahead=2))


def test_memory_bounds_how_far_a_plan_runs_ahead():
    free = search("straight", asked(4.0))
    tight = Question(PROFILE, slow(4.0, max(free.memory_bytes) - 1), planner="straight")
    assert free.plan.run_ahead == 2
    assert search("straight", tight).plan.run_ahead == 1


def test_what_it_buys_and_costs_is_said():
    [answer] = rank(asked(4.0))
    [said] = [reason for reason in answer.reasons if "runs ahead by 2 per hop" in reason]
    assert "4 instead of 2 weight versions and 3 instead of 1 updates of staleness" in said
    [answer] = rank(asked(4.0, schedule="2bw", batch=8))
    assert "weights are no older" in next(each for each in answer.reasons if "runs ahead" in each)


def test_a_question_asks_what_a_schedule_takes():
    with pytest.raises(InvalidInput, match="takes no further microbatches"):
        asked(1.0, schedule="gpipe", run_ahead=1)
    with pytest.raises(InvalidInput, match="run_ahead is 65"):
        asked(1.0, run_ahead=65)


def test_a_training_goes_on_by_weights_that_are_as_old():
    further = replace(TWO, run_ahead=1)
    assert not goes_on_from(further, TWO)
    double = replace(TWO, schedule="2bw", batch=8)
    assert goes_on_from(replace(double, run_ahead=1), double)
    assert search("best", Question(PROFILE, slow(4.0), like=further)).plan.run_ahead == 1


def test_plans_of_before_run_as_far_ahead_as_they_did():
    stored = to_plain(Plan, TWO)
    assert stored.pop("run_ahead") == 0
    assert from_plain(Plan, stored) == TWO


TWO = Plan("test", Partition((Stage(0, 2, (0,)), Stage(2, 4, (1,)))), "pipedream", 4)


@pytest.mark.parametrize(("hop", "ahead"), [(0.01, 0), (2.0, 1), (4.0, 2)])
def test_a_plan_by_hand_runs_as_far_ahead_as_a_planners(hop, ahead):
    by_hand = replace(asked(hop, schedule="pipedream"), planner="")
    base = Plan("straight", Partition((Stage(0, 1, (0,)), Stage(1, 4, (1,)))), "pipedream", 4)
    even = Partition((Stage(0, 2, (0,)), Stage(2, 4, (1,))))
    found = [cut_by_hand(by_hand, "2x1-4x1"), redrawn(by_hand, base, even)]
    planned = search("straight", asked(hop, schedule="pipedream"))
    for each in found:
        assert each.prediction.plan.run_ahead == ahead
        assert each.prediction.samples_per_second == planned.samples_per_second
    for further in (0, 3):
        named = replace(by_hand, run_ahead=further)
        assert cut_by_hand(named, "2x1-4x1").prediction.plan.run_ahead == further
        assert redrawn(named, base, even).prediction.plan.run_ahead == further


def test_a_plan_by_hand_is_refused_a_depth_that_its_schedule_does_not_take():
    drains = Plan("", Partition((Stage(0, 2, (0,)), Stage(2, 4, (1,)))), "gpipe", 4, 4)
    with pytest.raises(InvalidInput, match="'gpipe' takes no further microbatches") as fault:
        redrawn(asked(1.0, run_ahead=2), drains, drains.partition)
    assert "'pipedream'" in fault.value.advice
    with pytest.raises(InvalidInput, match="'gpipe' takes no further microbatches"):
        asked(1.0, schedule="gpipe", run_ahead=2)


def test_a_plan_by_hand_has_a_codec_at_each_cut():
    thirds = Partition(tuple(Stage(n, 4 if n == 2 else n + 1, (n,)) for n in range(3)))
    plan = Plan("straight", thirds, "pipedream", 4, run_ahead=1, codecs=("bf16", "bf16"))
    question = Question(PROFILE, Cluster((Level(3, 10**6),)), codec="bf16", run_ahead=1)
    for text, codecs in (("int8,none", ("int8", "")), ("none", ()), ("", ("bf16", "bf16"))):
        found = redrawn(question, plan, thirds, text).prediction
        assert (found.plan.codecs, found.plan.run_ahead) == (codecs, 1)
        assert found.sent_bytes == question.predict(replace(plan, codecs=codecs)).sent_bytes
    with pytest.raises(InvalidInput, match="names 3 codecs, and the plan has 2 cuts"):
        redrawn(question, plan, thirds, "int8,none,bf16")

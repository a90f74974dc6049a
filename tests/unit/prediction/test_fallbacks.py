"""The plans for fewer machines, against every plan that the search could have chosen."""

from dataclasses import replace
from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from backend.cluster.cluster import Cluster, Device, Level
from backend.cluster.fewer import without
from backend.errors import InvalidInput, StageflowError
from backend.pipeline.schedules.catalog import SCHEDULES, schedule
from backend.planning.plan import Partition, Plan, Stage
from backend.planning.work import SearchWork
from backend.prediction import limits
from backend.prediction.candidates import every_plan
from backend.prediction.fallbacks import fallbacks
from backend.prediction.limits import LIMITS
from backend.prediction.question import Question
from backend.prediction.same_updates import goes_on_from, updates_of
from backend.prediction.search import search
from backend.profiles.layer import Layer
from backend.profiles.profile import ModelGraph, Profile

SPEEDS = (1.0, 1.0, 2.0, 1.0, 0.5, 1.0)


def profile(num_layers: int, weights: int = 10**6) -> Profile:
    layers = (
        Layer(f"l{n}", "Linear", 1e-3 * (1 + n % 3), 2e-3, 10**5, weights * (1 + n % 2))
        for n in range(num_layers)
    )
    return Profile("some", ModelGraph.chain(tuple(layers)), microbatch=4)


def cluster(num: int, speeds: tuple[float, ...] = (), memory: float | None = None) -> Cluster:
    devices = tuple(Device("x", memory, speed) for speed in speeds[:num])
    levels = (Level(1, 1e9), Level(num, 1e8))
    return Cluster(levels, Device("x", memory), devices)


def all_plans(question: Question, before: Plan, bests: dict[Cluster, float]) -> float:
    """The most samples/s of the plans that may follow, on any of the first machines, which have a
    device each; `bests` remembers it for each part of a cluster: others begin with the same."""
    machines = (1,) * question.cluster.num_devices
    found = []
    for used in range(1, len(machines) + 1):
        part = without(question.cluster, machines, range(used, len(machines)))
        if part not in bests:
            bests[part] = best_on(replace(question, cluster=part, like=None), before)
        found.append(bests[part])
    return max(found)


def best_on(here: Question, before: Plan) -> float:
    """The most samples/s of the plans that may follow; 0.0 where there is none."""
    best = 0.0
    for plan in every_plan(here, SearchWork(LIMITS["best"])):
        if goes_on_from(plan, before):
            try:
                best = max(best, here.fitting(plan).samples_per_second)
            except StageflowError:
                continue
    return best


EQUAL = [(num, (), memory) for num in range(2, 7) for memory in (None, 3e7)[: 7 - num]]
UNEQUAL = [(2, SPEEDS, None), (3, SPEEDS, 3e7), (4, SPEEDS, 3e7)]
SLOW = pytest.param(6, SPEEDS, None, marks=pytest.mark.timeout(900))
"""It searches for 25 plans, with every way to share a batch: 47 s of a busy core."""
LITTLE = LIMITS | {"best": 2e5}
"""Work of the searches, which may thus do less than those that have to be no better."""


@pytest.mark.parametrize(("num", "speeds", "memory"), [*EQUAL, *UNEQUAL, SLOW])
def test_no_plan_that_may_follow_is_better(num, speeds, memory, monkeypatch):
    """Not even where the searches may do less than a third of their work; the plans that they are
    held against are made with all of it."""
    monkeypatch.setattr(limits, "LIMITS", LITTLE)
    monkeypatch.setattr(limits, "SPARE", 0.0)
    question = Question(profile(4), cluster(num, speeds, memory), "best", "1f1b-flush", batch=12)
    before = search("best", question)
    found = fallbacks(question, before.plan, (1,) * num)
    bests: dict[Cluster, float] = {}
    every = [lost for count in (1, 2) for lost in combinations(range(num), count) if count < num]
    for lost in every:
        (here,) = (fallback for fallback in found if fallback.is_for(lost))
        left = without(question.cluster, (1,) * num, lost)
        asked = replace(question, schedule="", cluster=left, batch=before.plan.batch)
        asked = replace(asked, profile=question.at(before.plan.microbatch))
        best = all_plans(asked, before.plan, bests)
        assert here.factor >= best / before.samples_per_second * (1 - 1e-9)  # steps may add
        if here.plan:
            assert goes_on_from(here.plan, before.plan)
            told = asked.fitting(here.plan).samples_per_second / before.samples_per_second
            assert here.factor == pytest.approx(told)
        assert (here.plan is None) == (best == 0.0)
        assert here.plan is not None or "memory" in here.fault


@settings(max_examples=25)
@given(st.sampled_from([s.name for s in SCHEDULES.values() if s.trains]), st.integers(2, 4))
def test_updates_stay_what_they_are(name, num):
    """Never from a synchronous rule to an asynchronous one, nor to other samples per update."""
    chunks = 2 if schedule(name).chunked else 1
    stages = tuple(Stage(n, n + 1, (n % num,)) for n in range(num * chunks))
    round_robin = Partition(stages, chunks=chunks)
    plan = Plan("", round_robin, "interleaved", 2, 12).under(name, 12)
    question = Question(profile(num * chunks), cluster(num), batch=12)
    for fallback in fallbacks(question, plan, (1,) * num):
        if fallback.plan is not None:
            assert updates_of(fallback.plan) == updates_of(plan)
            assert schedule(fallback.plan.schedule).flushes == schedule(name).flushes
            assert fallback.plan.microbatch * fallback.plan.batch == plan.microbatch * plan.batch


def test_memory_that_is_short_is_said():
    question = Question(profile(2, 10**7), cluster(3, memory=7e7), "best", "1f1b-flush")
    one, two = fallbacks(question, search("best", question).plan, (1, 1, 1))
    assert one.plan is not None
    assert (two.plan, two.factor) == (None, 0.0)
    assert "memory" in two.fault


def test_machines_that_are_not_the_clusters():
    plan = Plan("", Partition((Stage(0, 4, (0, 1)),)), "1f1b-flush", 4, 4)
    with pytest.raises(InvalidInput, match="1, 2 devices are not the plan's 2 devices"):
        fallbacks(Question(profile(4), cluster(2)), plan, (1, 2))
    assert fallbacks(Question(profile(4), cluster(2)), plan, (2,)) == ()

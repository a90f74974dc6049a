"""The bound by which candidates are left out: no simulation is faster."""

from unittest.mock import patch

from hypothesis import given, settings
from hypothesis import strategies as st

from backend.cluster.cluster import Cluster, Device, Level
from backend.cluster.presets import cluster_a, local
from backend.errors import StageflowError
from backend.planning.plan import Plan
from backend.planning.savings import Savings
from backend.planning.work import SearchWork
from backend.prediction import best
from backend.prediction.bottleneck import compute_bound, most_samples
from backend.prediction.by_bound import ByBound
from backend.prediction.candidates import every_plan
from backend.prediction.question import Question
from backend.prediction.search import search
from backend.prediction.simulations import Simulations
from backend.profiles.layer import Layer
from backend.profiles.profile import ModelGraph, Profile

CLUSTERS = (
    local(3),
    local(4, cores=2),
    Cluster((Level(3, 1e9, cores=2), Level(2, 1e8))),
    cluster_a(1),
    Cluster((Level(2, 1e9, 1e-4), Level(2, 1e7, 1e-3))),
    Cluster((Level(2, 1e8),), devices=(Device("slow"), Device("fast", speed=3.0))),
)


@st.composite
def questions(draw: st.DrawFn) -> Question:
    seconds = st.floats(1e-5, 1e-2)
    sizes = st.integers(0, 10**7)
    layers = tuple(
        Layer(
            f"l{n}",
            "Linear",
            draw(seconds),
            draw(seconds),
            draw(sizes),
            draw(sizes),
            update=draw(seconds),
        )
        for n in range(draw(st.integers(1, 6)))
    )
    profile = Profile("drawn", ModelGraph.chain(layers), microbatch=4)
    return Question(profile, draw(st.sampled_from(CLUSTERS)), batch=draw(st.integers(1, 8)))


@settings(max_examples=15)
@given(questions(), st.booleans(), st.booleans(), st.randoms(use_true_random=False))
def test_no_simulation_is_faster_than_the_bound(question, recompute, shard_state, random):
    plans = list(every_plan(question))
    for plan in random.sample(plans, min(20, len(plans))):
        asked = Savings(recompute, shard_state).of(plan)
        try:
            found = question.predict(asked)
        except StageflowError:
            continue
        bound = most_samples(question.profile_of(asked), question.cluster, asked)
        assert found.samples_per_second <= bound * (1 + 1e-9), asked
        rough = compute_bound(question.profile_of(asked), question.cluster, asked)
        assert bound <= rough * (1 + 1e-9), asked


@settings(max_examples=15)
@given(questions())
def test_plans_come_in_the_order_of_their_bounds_whichever_of_these_are_worked_out(question):
    plans = list(every_plan(question))[:200]
    simulations = Simulations(question, SearchWork())
    queue = ByBound(simulations)
    for number, plan in enumerate(plans):
        queue.push(number, plan)
    found = [queue.pop()[0] for _ in plans]
    assert found == sorted(range(len(plans)), key=lambda number: -simulations.bound(plans[number]))


@settings(max_examples=15)
@given(questions(), st.floats(0.2, 1.2))
def test_what_is_left_above_some_rate_is_known_by_few_bounds(question, share):
    plans = list(every_plan(question))[:200]
    simulations = Simulations(question, SearchWork())
    enough = share * max(map(simulations.bound, plans))
    queue = ByBound(Simulations(question, SearchWork()))
    for number, plan in enumerate(plans):
        queue.push(number, plan)
    found = 0
    while queue.above(enough):
        assert simulations.bound(queue.pop()[1]) > enough
        found += 1
    assert found == sum(simulations.bound(plan) > enough for plan in plans)


@settings(max_examples=10)
@given(questions())
def test_the_search_is_as_fast_as_the_fastest_of_all_candidates(question):
    """And faster where small steps from it lead on: what it answers is predicted alike."""
    rates = [
        question.fitting(plan).samples_per_second
        for plan in every_plan(question)
        if _fits(question, plan)
    ]
    with patch.object(best, "VAIN", 2):
        found = search("best", question)
    assert found.samples_per_second >= max(rates) * (1 - 1e-9)
    assert question.predict(found.plan).samples_per_second == found.samples_per_second


def _fits(question, plan):
    try:
        question.fitting(plan)
    except StageflowError:
        return False
    return True


def test_a_segment_that_begins_fast_is_not_taken_for_a_steady_state():
    """The last stage catches up in the second half: its slope is below the load of stage 0."""
    times = [(0.0078125, 0.0078125), (0.0078125, 0.005533182845333575), (0.0078125, 0.0079125)]
    layers = tuple(Layer(f"l{n}", "Linear", *each, 0, 0) for n, each in enumerate(times))
    question = Question(Profile("fast", ModelGraph.chain(layers), 4), CLUSTERS[0], batch=1)
    partition = next(p.partition for p in every_plan(question) if len(p.partition.stages) == 3)
    plan = Plan("best", partition, "pipedream", 4, recompute=True)
    bound = most_samples(question.profile, question.cluster, plan)
    assert question.predict(plan).samples_per_second <= bound

"""Work is counted, not timed; a search that comes to its limit says what it knows."""

import pytest

from backend.cluster.cluster import Cluster, Device, Level
from backend.pipeline.schedules.pipedream import PIPEDREAM
from backend.planning.memory import MemoryRule
from backend.planning.pipedream.planner import optimum
from backend.planning.work import SearchWork, WorkSpent
from backend.profiles.layer import Layer
from backend.profiles.profile import ModelGraph, Profile

LAYERS = tuple(Layer(f"l{n}", "Linear", 1.0 + n % 5, 2.0, 8 + n % 3, 40 - n) for n in range(20))
PROFILE = Profile("p", ModelGraph.chain(LAYERS), 1)
CLUSTER = Cluster((Level(4, 50.0), Level(4, 5.0)), Device(memory=2000.0))
RULE = MemoryRule(2000.0, PIPEDREAM)


def test_a_part_is_counted_in_the_whole():
    whole = SearchWork(100.0)
    part = whole.part(0.5)
    part.spend(60.0)  # the last thing may go beyond
    assert (part.done, whole.done, part.left, whole.left) == (60.0, 60.0, 0.0, 40.0)
    assert not whole.is_short
    with pytest.raises(WorkSpent):
        part.spend(1.0)
    assert whole.is_short
    whole.spend(1.0)
    assert whole.done == 61.0


@pytest.mark.parametrize("rule", [None, RULE])
def test_more_work_never_makes_a_worse_plan_and_no_bound_is_above_the_best_one(rule):
    best = optimum(PROFILE, CLUSTER, memory=rule)
    before = float("inf")
    short = set()
    for most in (3e3, 1e4, 2e4, 1e5, 1e6, 1e9):
        work = SearchWork(most)
        try:
            found = optimum(PROFILE, CLUSTER, memory=rule, work=work)
        except WorkSpent:
            assert rule is not None
            continue
        assert found.lower_bound <= best.seconds * (1 + 1e-9)
        assert best.seconds * (1 - 1e-9) <= found.seconds <= before * (1 + 1e-9)
        assert found == optimum(PROFILE, CLUSTER, memory=rule, work=SearchWork(most))
        before = found.seconds
        short.add(work.is_short)
    assert short == {True, False}
    assert before == pytest.approx(best.seconds)


@pytest.mark.parametrize("most", [0.0, 5.0, 6.0, 20.0, 31.0])
def test_several_amounts_are_spent_as_one_after_another(most):
    amounts = [1.0, 5.0, 0.0, 14.0, 10.0]
    alone, together = SearchWork(most), SearchWork(most)

    def one_by_one():
        for amount in amounts:
            alone.spend(amount)

    ends = []
    for spend in (one_by_one, lambda: together.spend_each(amounts)):
        try:
            spend()
            ends.append(True)
        except WorkSpent:
            ends.append(False)
    assert ends[0] is ends[1] is (most > 20.0)
    assert alone.done == together.done

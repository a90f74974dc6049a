"""PipeDream's planner against every plan wherever its stages stand: no bound is too high, and every
plan is the best. `tests/benchmarks/bench_every_placement.py` has more cases."""

import pytest
from drawn import drawn
from every_placement import fastest

from backend.planning.pipedream.bottleneck import bottleneck
from backend.planning.pipedream.planner import optimum
from backend.planning.plan import PlanDoesNotFit

NUMBERS = range(25)


@pytest.mark.parametrize("is_limited", [False, True])
@pytest.mark.parametrize("kind", ["2 levels", "3 levels", "unequal devices"])
def test_nothing_is_faster_than_a_bound_or_a_plan(kind, is_limited):
    ratios = []
    for number in NUMBERS:
        case = drawn(kind, number, is_limited)
        try:
            found = optimum(case.profile, case.cluster, memory=case.rule)
        except PlanDoesNotFit:
            continue
        best, plan = fastest(case.profile, case.cluster, case.rule, found)
        assert bottleneck(case.profile, case.cluster, found.partition) <= found.seconds * (1 + 1e-9)
        assert case.rule is None or case.rule.fits(case.profile, case.cluster, found.partition)
        assert found.lower_bound <= best * (1 + 1e-9), (number, plan)
        ratios.append(found.seconds / best if best else 1.0)
    assert len(ratios) > len(NUMBERS) / 2
    assert max(ratios) <= 1 + 1e-9

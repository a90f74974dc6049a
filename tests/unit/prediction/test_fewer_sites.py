"""By what a training on sites goes on: the same plan on sites that lost nothing."""

from dataclasses import replace
from itertools import combinations

import pytest

from backend.cluster.cluster import Cluster, Device, Level
from backend.planning.plan import Plan, PlanDoesNotFit
from backend.planning.sites import Sites
from backend.prediction.answer import rank
from backend.prediction.fallbacks import fallbacks
from backend.prediction.fewer_sites import on_fewer_sites
from backend.prediction.question import Question
from backend.prediction.shapes import microbatch_unit
from backend.profiles.layer import Layer
from backend.profiles.profile import ModelGraph, Profile

LAYERS = tuple(Layer(f"l{n}", "Linear", 1e-2, 2e-2, 10**4, 10**4) for n in range(4))
PROFILE = Profile("chain", ModelGraph.chain(LAYERS), 8)


def question(sites: int, machines: int = 1) -> Question:
    """Sites of two devices, on so many machines each."""
    inside = (Level(2, 1e10),) if machines == 1 else (Level(1, 1e10), Level(2, 1e9))
    cluster = Cluster((*inside, Level(sites, 1e7, sites=True)), Device("cpu"))
    return Question(PROFILE, cluster, "straight", "1f1b-flush", batch=4)


def planned(asked: Question, rule: str = "diloco:every=4") -> Plan:
    return rank(replace(asked, sites=rule))[0].prediction.plan


@pytest.mark.parametrize(("sites", "on"), [(2, (1,)), (3, (1, 1)), (4, (2, 2))])
def test_of_like_machines_any_may_go(sites: int, on: tuple[int, ...]) -> None:
    """Where each is a site: on as many as their number is a multiple of."""
    asked = question(sites)
    plan = planned(asked)
    found = fallbacks(asked, plan, (2,) * sites)
    assert [(each.count, each.lost, each.sites) for each in found] == [
        (number, (), count) for number, count in enumerate(on, start=1)
    ]
    for each in found:
        assert each.plan is not None
        assert each.plan.partition == plan.partition
        assert each.plan.sites == (plan.sites if each.sites > 1 else None)
        assert each.factor == pytest.approx(each.sites / sites, rel=0.05)
        assert microbatch_unit(plan) % microbatch_unit(each.plan) == 0  # epochs stay what they are


def test_every_machine_of_a_site_that_stays_is_that_of_before() -> None:
    """Two machines of a device each per site: which ones are left is told, and no other is used."""
    asked = question(2, machines=2)
    plan = planned(asked)
    assert plan.devices == (0, 1, 2, 3)
    found = fallbacks(asked, plan, (1,) * 4)
    assert [each.lost for each in found] == [
        lost for count in (1, 2) for lost in combinations(range(4), count)
    ]
    for each in found:
        whole = [site for site in (0, 1) if not {2 * site, 2 * site + 1} & set(each.lost)]
        left = [device for device in range(4) if device not in each.lost]
        if not whole:
            assert (each.plan, each.fault) == (None, "each of the 2 sites has lost a machine")
            continue
        assert each.plan is not None
        assert [left[device] for device in each.plan.devices] == [2 * whole[0], 2 * whole[0] + 1]


def test_sites_that_are_left_may_be_apart_from_each_other_by_more() -> None:
    """Of four sites of two machines the second loses one: the first and the third go on, between
    which the other one stands, and where three are left evenly none is skipped."""
    asked = question(4, machines=2)
    found = {each.lost: each for each in fallbacks(asked, planned(asked), (1,) * 8)}
    left = [device for device in range(8) if device != 2]
    plan = found[2,].plan
    assert plan is not None
    assert [left[device] for device in plan.devices] == [0, 1, 4, 5]
    assert plan.sites == Sites("diloco", every=4, devices=3)


def test_where_machines_of_lost_sites_stand_between_it_waits() -> None:
    """Of eight sites of two machines four would go on, the first three without a gap."""
    asked = question(8, machines=2)
    with pytest.raises(PlanDoesNotFit, match="stand between"):
        on_fewer_sites(asked, planned(asked), (1,) * 16, (6,))

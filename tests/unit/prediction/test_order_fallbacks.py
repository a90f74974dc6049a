"""What becomes of an order that a plan keeps when machines go."""

from dataclasses import replace

import pytest

from backend.cluster.cluster import Cluster, Level
from backend.codec import from_json, to_json
from backend.pipeline.lower import lower
from backend.pipeline.schedules.catalog import schedule
from backend.pipeline.verify import verify
from backend.planning.plan import Plan
from backend.prediction.answer import by_order, rank
from backend.prediction.fallbacks import FOUND_ANEW, Fallback, fallbacks, order_words
from backend.prediction.question import Question
from backend.prediction.same_updates import goes_on_from
from backend.profiles.profile import ModelGraph, Profile
from tests.unit.prediction.test_kept_orders import a_profile, csv_of

SERVERS = Cluster((Level(1, 1e3), Level(4, 100.0)))


def question(name: str = "", batch: int = 8) -> Question:
    return Question(a_profile(1), SERVERS, "straight" if name else "", name, batch)


def checked(asked: Question, plan: Plan, found: Fallback) -> None:
    """It makes the same updates, by a program that is sound, at the rate that is told."""
    assert found.plan is not None
    assert goes_on_from(found.plan, plan)
    assert verify(lower(schedule(found.plan.schedule), found.plan.shape(2 * plan.batch))) == ()
    left = replace(asked, cluster=Cluster((Level(1, 1e3), Level(4 - found.count, 100.0))))
    rates = left.predict(found.plan).samples_per_second, asked.predict(plan).samples_per_second
    assert found.factor == pytest.approx(rates[0] / rates[1])
    assert from_json(Fallback, to_json(Fallback, found)) == found


@pytest.mark.parametrize("name", ["zb-h1", "gpipe", "zb-v"])
def test_an_order_from_a_file_gives_way_to_a_schedule(name: str) -> None:
    asked = question()
    plan = by_order(asked, csv_of(name)).prediction.plan
    assert plan.schedule == "custom"
    for found in fallbacks(asked, plan, (1,) * 4):
        checked(asked, plan, found)
        assert found.instead == found.plan.schedule
        assert found.plan.kept_order == ()
        assert order_words([found]).endswith(f"schedule {found.instead}")


def test_an_order_that_was_found_is_found_anew() -> None:
    """Of layers whose weights are too heavy to have replicas."""
    asked = question("synthesised", 3)
    heavy = [replace(layer, parameter_bytes=10**5) for layer in a_profile(1, 5).layers]
    asked = replace(asked, profile=Profile("heavy", ModelGraph.chain(tuple(heavy)), 2))
    plan = rank(asked)[0].prediction.plan
    both = fallbacks(asked, plan, (1,) * 4)
    plain = fallbacks(asked, replace(plan, schedule="custom"), (1,) * 4)
    for found, without in zip(both, plain, strict=True):
        checked(asked, plan, found)
        assert found.factor >= without.factor
    assert any(found.instead == "synthesised" and found.plan.kept_order for found in both)
    assert FOUND_ANEW in order_words(both)


def test_a_schedule_of_the_catalog_loses_no_order() -> None:
    asked = replace(question(), planner="straight", schedule="zb-h1")
    plan = rank(asked)[0].prediction.plan
    found = fallbacks(asked, plan, (1,) * 4)
    assert [each.instead for each in found] == ["", ""]
    assert order_words(found) == ""

"""Two kept plans: figures, layers and stages that differ, and nothing that is the same."""

from dataclasses import replace
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.differences import devices_text, fact_row, moved_text, stage_row
from backend.cluster.presets import local
from backend.comparison.plans import MovedLayers, PlanDifferences, PlanFact, plan_differences
from backend.planning.plan import Partition, Plan, Stage
from backend.prediction.predict import predict
from backend.profiles.profile import Profile
from backend.runs.plans import StoredPlan
from tests.app import seed

PROFILE = seed.a_profile()
LAYERS = len(PROFILE.layers)
NAMES = [layer.name for layer in PROFILE.layers]


def kept(*stops: int, profile: Profile = PROFILE, **changes: Any) -> StoredPlan:
    """One device per stage; each stage ends before a layer of `stops`, the last at the end."""
    bounds = (0, *stops, LAYERS)
    stages = [Stage(a, b, (n,)) for n, (a, b) in enumerate(pairwise(bounds))]
    plan = Plan("straight", Partition(tuple(stages)), "1f1b-flush", seed.SAMPLES, 4)
    cluster = local(4)
    found = predict(profile, cluster, replace(plan, **changes))
    return StoredPlan(1, "a plan", 1, cluster, found, datetime(2026, 3, 1, tzinfo=UTC))


def beside(first: StoredPlan, second: StoredPlan) -> PlanDifferences:
    return plan_differences(first, PROFILE, second, PROFILE)


def test_a_plan_differs_in_nothing_from_itself() -> None:
    found = beside(kept(6), kept(6))
    assert (found.facts, found.moved, found.stages) == ((), (), ())
    assert "throughput" in found.alike


def test_another_cut_moves_the_layers_between_and_changes_both_stages() -> None:
    first, second = kept(6), kept(9)
    found = beside(first, second)
    assert found.moved == (MovedLayers(tuple(NAMES[6:9]), 1, 0),)
    assert [pair.stage for pair in found.stages] == [0, 1]
    facts = {fact.name: (fact.first, fact.second) for fact in found.facts}
    speeds = tuple(plan.prediction.samples_per_second for plan in (first, second))
    assert facts["throughput"] == speeds
    assert "schedule" in found.alike
    assert "schedule" not in facts


def test_another_schedule_moves_no_layer() -> None:
    found = beside(kept(6), kept(6, schedule="gpipe"))
    assert found.moved == ()
    facts = {fact.name: (fact.first, fact.second) for fact in found.facts}
    assert facts["schedule"] == ("1f1b-flush", "gpipe")


def test_a_stage_that_one_plan_lacks_stands_alone() -> None:
    found = beside(kept(6), kept(6, 9))
    assert [pair.stage for pair in found.stages] == [0, 1, 2]  # the first holds more in flight
    last = found.stages[2]
    assert last.first is None
    assert last.second is not None
    assert last.second.first_layer == NAMES[9]
    assert stage_row(last)[1].startswith("— → ")


def test_layers_of_another_model_are_not_said_to_move() -> None:
    others = tuple(replace(layer, name=f"other.{layer.name}") for layer in PROFILE.layers)
    other = replace(PROFILE, name="other", graph=replace(PROFILE.graph, layers=others))
    found = plan_differences(kept(6), PROFILE, kept(9, profile=other), other)
    assert found.moved == ()
    assert found.facts[0].name == "model"


@given(st.integers(1, LAYERS - 1), st.integers(1, LAYERS - 1))
def test_what_moved_is_what_lies_between_the_cuts(one: int, other: int) -> None:
    found = beside(kept(one), kept(other))
    moved = [name for group in found.moved for name in group.layers]
    assert moved == NAMES[min(one, other) : max(one, other)]
    turned = beside(kept(other), kept(one))
    assert [(g.layers, g.second, g.first) for g in turned.moved] == [
        (g.layers, g.first, g.second) for g in found.moved
    ]


def test_words() -> None:
    assert moved_text(MovedLayers(("a",), 0, 1)) == "a: stage 0 → stage 1"
    assert moved_text(MovedLayers(("a", "b", "c"), 2, 1)) == (
        "a – c (3\u00a0layers): stage 2 → stage 1"
    )
    assert devices_text(range(15)) == "0, 1, 2, 3 and 11 more"
    rows = [fact_row(fact) for fact in beside(kept(6), kept(6, recompute=True)).facts]
    assert ("Recomputation", "no", "yes", "") in rows
    assert fact_row(PlanFact("planner", "pipedream-2bw", "by-hand")) == (
        *("Planner", "PipeDream-2BW", "Edited by hand", ""),
    )
    assert next(row for row in rows if row[0] == "Throughput")[3].startswith("−")
    assert {len(row) for row in rows} == {4}


@pytest.mark.parametrize("devices", [(), (0,), (0, 1, 2, 3)])
def test_a_few_devices_are_named(devices: tuple[int, ...]) -> None:
    assert "more" not in devices_text(devices)

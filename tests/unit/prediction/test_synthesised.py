"""An order found for a plan: sound, within the memory of the plan's schedule, never slower."""

import random
from dataclasses import replace

import pytest

from backend.cluster.cluster import Cluster, Level
from backend.errors import InvalidInput
from backend.pipeline.held import in_flight, most
from backend.pipeline.verify import verify
from backend.planning.balanced import copied, even_stops, side_by_side
from backend.planning.plan import Plan
from backend.prediction.predict import predicted_program
from backend.prediction.synthesised import synthesised
from backend.profiles.layer import Layer
from backend.profiles.profile import ModelGraph, Profile

CLUSTER = Cluster((Level(4, 100.0),))


def a_profile(seed: int) -> Profile:
    dealt = random.Random(seed)
    layers = (
        Layer(f"l{n}", "Linear", dealt.uniform(1, 9), dealt.uniform(2, 18), dealt.randint(8, 80), 8)
        for n in range(6)
    )
    return Profile("p", ModelGraph.chain(tuple(layers)), 2)


def a_plan(profile: Profile, name: str) -> Plan:
    return Plan("by-hand", side_by_side(even_stops(profile, 3)), name, 2, 6)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", ["1f1b-flush", "zb-h1", "zb-h2"])
def test_it_is_sound_fits_and_is_never_slower(seed: int, name: str):
    profile = a_profile(seed)
    plan = a_plan(profile, name)
    found = synthesised(profile, CLUSTER, plan, work=20_000)
    program = found.found.program
    assert verify(program) == ()
    assert all(map(int.__le__, most(program, in_flight(program.rows)), found.most_held))
    _, timeline = predicted_program(profile, CLUSTER, plan, plan.batch)
    assert found.found.seconds <= found.best.seconds <= timeline.makespan
    lost = found.best.seconds - found.found.seconds
    assert found.idle_saved == pytest.approx([lost] * 3)


def test_where_stages_differ_it_gains():
    profile = a_profile(1)
    found = synthesised(profile, CLUSTER, a_plan(profile, "zb-h1"), work=20_000)
    assert found.gain > 1.0


def test_what_is_no_straight_pipeline_is_refused():
    profile = a_profile(0)
    plan = a_plan(profile, "zb-h1")
    several = replace(plan, partition=copied(even_stops(profile, 2), 2))
    for other in (replace(plan, schedule="pipedream", batch=1), several):
        with pytest.raises(InvalidInput, match="not one straight pipeline"):
            synthesised(profile, CLUSTER, other)

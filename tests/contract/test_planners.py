"""What every planner of the catalog owes: whole, within the cluster, repeatable, runnable."""

import random
from functools import cache

import pytest

from backend.cluster.cluster import Cluster, Level
from backend.cluster.presets import cluster_a, local
from backend.pipeline.lower import lower
from backend.pipeline.schedules.catalog import training_schedules
from backend.pipeline.simulate import simulate
from backend.pipeline.verify import verify
from backend.planning.catalog import PLANNERS
from backend.planning.plan import Partition, Plan
from backend.prediction.durations import PlanDurations
from backend.prediction.shapes import microbatch_unit, training_shape
from backend.profiles.layer import Layer
from backend.profiles.profile import ModelGraph, Profile


def chain(num_layers: int, seed: int) -> Profile:
    """Layers of uneven costs; every fifth is free, as a view or an input is."""
    chance = random.Random(seed)
    layers = tuple(
        Layer(
            f"layer{number}",
            "Linear",
            forward=number % 5 and chance.uniform(1e-4, 1e-2),
            backward=number % 5 and chance.uniform(1e-4, 2e-2),
            output_bytes=chance.randrange(1, 10**6),
            parameter_bytes=chance.choice([0, 10**4, 10**7]),
        )
        for number in range(num_layers)
    )
    return Profile(f"chain{num_layers}", ModelGraph.chain(layers), microbatch=4)


def branched(num_layers: int) -> Profile:
    """A chain with a skip connection over every third layer."""
    plain = chain(num_layers, seed=7)
    skips = tuple((n, n + 3) for n in range(0, num_layers - 3, 3))
    edges = tuple(sorted({*plain.graph.edges, *skips}))
    return Profile("branched", ModelGraph(plain.layers, edges), microbatch=4)


PROFILES = [chain(1, 0), chain(2, 1), chain(9, 2), chain(30, 3), branched(20)]
CLUSTERS = [
    local(1),
    local(2),
    local(5),
    Cluster((Level(2, 12e9), Level(3, 1e9))),
    Cluster((Level(2, 1e7), Level(2, 1e10))),
    cluster_a(servers=2),
]

pytestmark = [
    pytest.mark.parametrize("name", PLANNERS),
    pytest.mark.parametrize("profile", PROFILES, ids=lambda profile: profile.name),
    pytest.mark.parametrize(
        "cluster", CLUSTERS, ids=lambda c: "x".join(str(x.count) for x in c.levels)
    ),
]


@cache
def _planned(name: str, number: int, cluster: Cluster) -> Partition:
    return PLANNERS[name].plan(PROFILES[number], cluster)


def planned(name: str, profile: Profile, cluster: Cluster) -> Partition:
    """Once for all tests that look at it."""
    return _planned(name, PROFILES.index(profile), cluster)


def test_every_layer_has_one_stage(name, profile, cluster):
    partition = planned(name, profile, cluster)
    covered = [n for stage in partition.stages for n in range(stage.first, stage.stop)]
    assert covered == list(range(len(profile.layers)))


def test_devices_are_distinct_and_of_the_cluster(name, profile, cluster):
    partition = planned(name, profile, cluster)
    used = [device for stage in partition.stages for device in stage.devices]
    assert len(used) == len(set(used))
    assert set(used) <= set(range(cluster.num_devices))


def test_the_same_question_has_the_same_answer(name, profile, cluster):
    assert PLANNERS[name].plan(profile, cluster) == planned(name, profile, cluster)


@pytest.mark.parametrize("schedule", training_schedules(), ids=lambda member: member.name)
def test_the_plan_runs(name, profile, cluster, schedule):
    batch = 2 * cluster.num_devices if schedule.batched else 1
    plan = Plan(name, planned(name, profile, cluster), schedule.name, 4, batch)
    program = lower(schedule, training_shape(plan, 2 * microbatch_unit(plan)))
    assert verify(program) == ()
    timeline = simulate(program, PlanDurations(profile, plan.partition, cluster))
    assert len(timeline.spans) == program.num_actions

"""A small profile with round numbers, and a cluster of two servers of two."""

import pytest

from backend.cluster.cluster import Cluster, Device, Level
from backend.planning.plan import Partition, Plan, Stage
from backend.profiles.layer import Layer
from backend.profiles.profile import ModelGraph, Profile

LAYERS = (
    Layer("a", "Linear", 1.0, 2.0, output_bytes=100, parameter_bytes=1000, update=0.5),
    Layer("b", "Linear", 2.0, 3.0, output_bytes=200, parameter_bytes=0),
    Layer("c", "Linear", 4.0, 6.0, output_bytes=50, parameter_bytes=4000, update=0.25),
)


@pytest.fixture
def profile() -> Profile:
    return Profile("small", ModelGraph.chain(LAYERS), microbatch=8)


@pytest.fixture
def cluster() -> Cluster:
    return Cluster((Level(2, 1000.0, 0.125), Level(2, 100.0, 0.5)), Device(speed=2.0))


@pytest.fixture
def make_plan():
    """make_plan((stop, devices), ..., schedule=, batch=) -> Plan with those stages."""

    def make(*stages, schedule="pipedream", batch=1) -> Plan:
        firsts = (0, *(stop for stop, _ in stages[:-1]))
        built = (
            Stage(first, stop, devices)
            for first, (stop, devices) in zip(firsts, stages, strict=True)
        )
        return Plan("by-hand", Partition(tuple(built)), schedule, 8, batch)

    return make

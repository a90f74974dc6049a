"""The cost model on real devices, by hand."""

import pytest

from backend.cluster.cluster import Cluster, Device, Level
from backend.planning.pipedream.bottleneck import bottleneck
from backend.planning.plan import Partition, Stage
from backend.profiles.layer import Layer
from backend.profiles.profile import ModelGraph, Profile

PROFILE = Profile("p", ModelGraph.chain((Layer("l", "Linear", 1.0, 1.0, 30, 40),) * 4), 1)
CLUSTER = Cluster((Level(2, 100.0), Level(2, 10.0)))


def seconds(*stages, cluster=CLUSTER, overlap=True):
    return bottleneck(PROFILE, cluster, Partition(stages), overlap)


def test_a_stage_inside_a_server_reduces_on_its_fast_link():
    assert seconds(Stage(0, 4, (0, 1))) == max(8.0, 2 * 160 / 100) / 2


def test_a_stage_over_servers_reduces_on_the_slow_link():
    assert seconds(Stage(0, 4, (1, 2))) == max(8.0, 2 * 160 / 10) / 2
    assert seconds(Stage(0, 4, (1, 2)), overlap=False) == (8.0 + 2 * 160 / 10) / 2


def test_a_cut_costs_what_its_slowest_link_takes():
    assert seconds(Stage(0, 2, (0,)), Stage(2, 4, (1,))) == 4.0
    assert seconds(Stage(0, 2, (0,)), Stage(2, 4, (2,))) == 2 * 30 / 10


def test_copies_carry_their_share_of_a_cut_and_reduce_all_their_weights():
    """In each server the two stages; a cut of 0.6 s shared by two, a ring of 4 1/2 160 / 10."""
    copies = (Stage(0, 2, (0, 2)), Stage(2, 4, (1, 3)))
    assert seconds(*copies) == max(4.0, 2 * 160 / 10) / 2
    crossed = (Stage(0, 2, (0, 1)), Stage(2, 4, (2, 3)))
    assert seconds(*crossed) == 2 * 30 / 10


def test_the_slowest_device_sets_the_pace():
    devices = tuple(Device(speed=speed) for speed in (1.0, 0.5, 2.0, 2.0))
    cluster = Cluster((Level(4, 1e9),), devices=devices)
    assert seconds(Stage(0, 4, (0, 1)), cluster=cluster) == pytest.approx(8.0)
    assert seconds(Stage(0, 4, (2, 3)), cluster=cluster) == pytest.approx(2.0)


def test_the_order_of_the_partition_decides_what_is_cut():
    layers = tuple(Layer(f"l{n}", "Conv2d", 1.0, 1.0, size, 0) for n, size in enumerate((9, 1, 5)))
    profile = Profile("p", ModelGraph(layers, ((0, 1),)), 1)
    cluster = Cluster((Level(2, 0.1),))
    stages = (Stage(0, 2, (0,)), Stage(2, 3, (1,)))
    assert bottleneck(profile, cluster, Partition(stages)) == 4.0
    other = Partition(stages, order=(0, 2, 1))
    assert bottleneck(profile, cluster, other) == 2 * 9 / 0.1

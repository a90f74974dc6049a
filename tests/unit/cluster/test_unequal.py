"""Clusters of unequal devices, from YAML and from registered nodes."""

import pytest

from backend.cluster.cluster import Cluster, Device, Level
from backend.cluster.document import read_cluster, write_cluster
from backend.cluster.registered import ETHERNET, from_nodes
from backend.errors import InvalidInput

FAST, SLOW = Device("fast", 80e9, 2.0), Device("slow", 16e9, 1.0)


def test_a_list_of_devices_is_read_and_written():
    cluster = read_cluster(
        "levels: [{count: 2, bandwidth: 12e9, latency: 5e-6}]\n"
        "device: [{name: fast, memory: 80e9, speed: 2}, {name: slow, memory: 16e9}]\n"
    )
    assert cluster == Cluster((Level(2, 12e9, 5e-6),), FAST, (FAST, SLOW))
    assert read_cluster(write_cluster(cluster)) == cluster
    assert not cluster.is_uniform
    assert cluster.speed == 3.0
    assert cluster.at(1) == SLOW


def test_a_list_of_another_length_is_refused():
    with pytest.raises(InvalidInput, match="1 devices are listed, the levels hold 2"):
        read_cluster("levels: [{count: 2, bandwidth: 1}]\ndevice: [{name: a}]")


def test_a_faulty_device_is_named_by_its_place():
    with pytest.raises(InvalidInput, match=r"device\[1\]"):
        read_cluster("levels: [{count: 2, bandwidth: 1}]\ndevice: [{}, {speed: fast}]")


def test_levels_are_climbed_as_far_as_devices_are_apart():
    cluster = Cluster((Level(2, 100.0), Level(2, 10.0), Level(2, 50.0)))
    assert [cluster.span(d) for d in [(3,), (2, 3), (1, 2), (0, 1, 7)]] == [0, 1, 2, 3]
    assert cluster.slowest == (100.0, 10.0, 10.0)
    assert cluster.sizes == (1, 2, 4, 8)


def test_equal_nodes_make_servers():
    cluster = from_nodes([(SLOW, SLOW), (), (SLOW, SLOW)])
    assert [level.count for level in cluster.levels] == [2, 2]
    assert cluster.levels[1].bandwidth == ETHERNET
    assert cluster.device == SLOW
    assert cluster.devices == ()


def test_one_node_is_one_level_of_its_own_links():
    cluster = from_nodes([(FAST, SLOW)], inside=(5.0, 0.1))
    assert cluster == Cluster((Level(2, 5.0, 0.1),), FAST, (FAST, SLOW))


def test_nodes_of_different_sizes_are_all_on_the_slow_link():
    cluster = from_nodes([(FAST,), (SLOW, SLOW)], between=(7.0, 0.0))
    assert cluster == Cluster((Level(3, 7.0),), FAST, (FAST, SLOW, SLOW))


def test_no_device_is_no_cluster():
    with pytest.raises(InvalidInput, match="no registered node"):
        from_nodes([()])

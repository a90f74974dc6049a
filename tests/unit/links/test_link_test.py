"""Measured links as a cluster to plan for."""

from datetime import UTC, datetime

import pytest

from backend.cluster.cluster import Device
from backend.cluster.document import read_cluster, write_cluster
from backend.links.link_test import Link, LinkState, LinkTest, LinkTestMember

CPU = Device("cpu")


def measured(counts: tuple[int, ...], *links: Link) -> LinkTest:
    members = tuple(LinkTestMember(f"n{i}", (CPU,) * count) for i, count in enumerate(counts))
    return LinkTest(1, LinkState.DONE, members, datetime.now(UTC), links=links)


def test_devices_are_numbered_through_node_by_node() -> None:
    found = measured((2, 3, 1))
    assert found.num_devices == 6
    assert [found.member_of(device) for device in range(6)] == [0, 0, 1, 1, 1, 2]
    assert [found.first_device(name) for name in ("n0", "n1", "n2")] == [0, 2, 5]


def test_the_slowest_pair_of_nodes_gives_the_level_between() -> None:
    links = (
        Link(0, 1, 8e9, 1e-5),
        Link(2, 3, 4e9, 2e-5),
        *(Link(a, b, 1e9 + a, 1e-4) for a in (0, 1) for b in (2, 3)),
    )
    cluster = measured((2, 2), *links).cluster()
    assert [(level.count, level.bandwidth) for level in cluster.levels] == [
        (2, 4e9),
        (2, 1e9 + 0.5),
    ]
    assert cluster.levels[0].latency == 2e-5
    assert read_cluster(write_cluster(cluster)) == cluster


def test_one_node_is_one_level() -> None:
    cluster = measured((2,), Link(0, 1, 3e9, 1e-5)).cluster()
    assert [level.bandwidth for level in cluster.levels] == [3e9]


@pytest.mark.parametrize("counts", [(1, 1), (1, 2)])
def test_nodes_of_one_device_lie_on_the_links_between(counts: tuple[int, ...]) -> None:
    pairs = [(0, b) for b in range(1, sum(counts))]
    cluster = measured(counts, *(Link(a, b, 2e8, 1e-4) for a, b in pairs)).cluster()
    assert cluster.levels[-1].bandwidth == 2e8
    assert cluster.num_devices == sum(counts)

"""The links of a ring: those between each member and the next, and back to the first."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from backend.cluster.cluster import Cluster, Device, Level
from backend.cluster.ring import ring

LEVELS = st.lists(st.integers(1, 5), min_size=1, max_size=4)


def cluster(counts: list[int]) -> Cluster:
    levels = [Level(count, 1e9 / (1 + at), 1e-6 * (1 + at)) for at, count in enumerate(counts)]
    return Cluster(tuple(levels), Device("own"))


@given(LEVELS, st.data())
def test_it_has_the_links_from_each_member_to_the_next(counts, data):
    one = cluster(counts)
    devices = data.draw(st.lists(st.integers(0, one.num_devices - 1), min_size=1, max_size=12))
    members = sorted(devices)
    pairs = zip(members, (*members[1:], members[0]), strict=True)
    links = [one.link(a, b) for a, b in pairs]

    found = ring(one, devices)

    assert found.members == len(devices)
    assert found.links == {(link.latency, link.bandwidth) for link in links}


@given(LEVELS, st.lists(st.integers(0, 10**9), min_size=1, max_size=9), st.data())
def test_sums_at_once_take_what_each_takes(counts, sizes, data):
    one = cluster(counts)
    over = ring(one, data.draw(st.sets(st.integers(0, one.num_devices - 1), min_size=1)))
    assert over.seconds_of_each(np.array(sizes, float)).tolist() == list(map(over.seconds, sizes))

"""Which devices stages have, changed a little: as their sentences say, found device by device."""

from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from backend.cluster.cluster import Cluster, Device, Level
from backend.prediction.device_moves import IDLE, StageDevices, in_turn, moved_devices


@st.composite
def placed(draw):
    """Stages on devices of a cluster of hosts, some idle, some slower."""
    counts = draw(st.lists(st.integers(1, 3), min_size=2, max_size=3))
    levels = tuple(Level(count, 1e9) for count in counts)
    size = Cluster(levels).num_devices
    speeds = draw(st.sampled_from([(1.0,), (1.0, 2.0)]))
    every = tuple(Device("own", draw(st.sampled_from(speeds))) for _ in range(size))
    cluster = Cluster(levels, Device("own"), every if len(speeds) > 1 else ())
    stage_of = draw(st.lists(st.integers(IDLE, 2), min_size=size, max_size=size))
    numbers = sorted(set(stage_of) - {IDLE})
    stages = tuple(tuple(d for d in range(size) if stage_of[d] == n) for n in numbers)
    return stages, cluster


def is_like(one: int, other: int, stages, cluster: Cluster) -> bool:
    """The same stage and device, and as many of the same beside them on every level."""
    places = StageDevices(stages, cluster).stage_of
    kinds = [(places[d], each.speed, each.memory) for d, each in enumerate(cluster.each)]
    groups = [[kinds[d // s * s : d // s * s + s] for s in cluster.sizes] for d in (one, other)]
    return all(sorted(a) == sorted(b) for a, b in zip(*groups, strict=True))


@given(placed())
def test_of_alike_devices_one_is_taken(case):
    stages, cluster = case
    found = StageDevices(stages, cluster)
    chosen = [device for devices in found.alike.values() for device in devices]
    for device in range(cluster.num_devices):
        assert sum(is_like(device, each, stages, cluster) for each in chosen) == 1
    for stage, devices in found.alike.items():
        assert {found.stage_of[device] for device in devices} == {stage}


@given(placed())
def test_in_turn_is_one_of_each_host_after_another(case):
    stages, cluster = case
    for stage in stages:
        found = in_turn(stage, cluster)
        rounds = [
            sum(cluster.host_of(before) == cluster.host_of(device) for before in found[:place])
            for place, device in enumerate(found)
        ]
        assert sorted(found) == sorted(stage)
        assert list(zip(rounds, found, strict=True)) == sorted(zip(rounds, found, strict=True))


@given(placed())
def test_no_host_is_left_out_that_could_be(case):
    stages, cluster = case
    found = set(moved_devices(stages, cluster)) if len(stages) else set()
    for host in range(cluster.num_devices // cluster.levels[0].count):
        left = tuple(tuple(d for d in each if cluster.host_of(d) != host) for each in stages)
        if not all(left) or left == stages:
            continue
        sizes = [len(each) for each in left]
        alike = [one for one in found if [len(each) for each in one] == sizes]
        assert left in found if not cluster.is_uniform else alike


@given(placed())
def test_moves_use_devices_of_the_cluster_once(case):
    stages, cluster = case
    for found, stage in product(moved_devices(stages, cluster), range(len(stages))):
        used = [device for each in found for device in each]
        assert found[stage]
        assert len(set(used)) == len(used)
        assert set(used) <= set(range(cluster.num_devices))

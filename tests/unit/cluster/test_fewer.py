"""A cluster without some of its machines."""

from backend.cluster.cluster import Cluster, Device, Level
from backend.cluster.fewer import machines, without

INNER, RACK, ROOM = Level(2, 100.0, 0.1), Level(3, 10.0, 0.2), Level(2, 1.0, 0.3)


def test_one_server_of_three():
    left = without(Cluster((INNER, RACK)), (2, 2, 2), {1})
    assert left.levels == (INNER, Level(2, 10.0, 0.2))
    assert machines(left) == (2, 2)


def test_the_last_one_has_its_inner_links_alone():
    cores = Level(2, 100.0, 0.1, cores=2)
    assert without(Cluster((cores, RACK)), (2, 2, 2), {0, 2}).levels == (cores,)


def test_of_three_levels_the_slowest_links_join_what_is_left():
    left = without(Cluster((INNER, RACK, ROOM)), (2,) * 6, {5})
    assert left.levels == (INNER, Level(5, 1.0, 0.3))


def test_devices_of_other_machines_keep_their_places():
    devices = tuple(Device("x", speed=1.0 + n) for n in range(4))
    cluster = Cluster((Level(2, 100.0), Level(2, 10.0)), devices[0], devices)
    assert without(cluster, (2, 2), {0}).each == devices[2:]
    alike = without(cluster, (1, 1, 1, 1), {1, 2, 3})
    assert (alike.device, alike.devices) == (devices[0], ())


def test_machines_of_different_sizes_are_one_level():
    cluster = Cluster((Level(6, 10.0, 0.5),))
    assert machines(cluster) == (6,)
    assert without(cluster, (1, 2, 3), {2}).levels == (Level(3, 10.0, 0.5),)

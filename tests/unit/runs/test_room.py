"""What is planned for of what a pool has."""

import pytest

from backend.cluster.cluster import Cluster, Device, Level
from backend.errors import InvalidInput
from backend.runs.pools.room import BETWEEN, INSIDE, Machines, PoolRoom

FEW, MANY = Machines(Device("a100"), 8, (8,)), Machines(Device("h100", 80e9), 4, (4, 0, 3))
ROOM = PoolRoom((FEW, MANY))


def test_devices_are_counted_over_all_kinds() -> None:
    assert (ROOM.total, ROOM.free) == (20, 15)


@pytest.mark.parametrize(("machines", "levels"), [(0, (4, 3)), (2, (4, 2)), (1, (4,))])
def test_the_machines_are_of_the_kind_with_the_most_devices(machines, levels) -> None:
    links = zip(levels, (INSIDE, BETWEEN), strict=False)
    expected = tuple(Level(count, bandwidth) for count, bandwidth in links)
    assert ROOM.cluster(machines) == Cluster(expected, MANY.device)


def test_more_than_there_are_is_refused_with_what_there_is() -> None:
    with pytest.raises(InvalidInput, match="3 machines with 4 h100, not 4"):
        ROOM.cluster(4)
    with pytest.raises(InvalidInput, match="not known yet"):
        PoolRoom(()).cluster()

"""What is planned for of what a pool has."""

from datetime import UTC, datetime, timedelta

import pytest

from backend.cluster.cluster import Cluster, Device, Level
from backend.errors import InvalidInput
from backend.runs.pools.room import BETWEEN, INSIDE, ForetoldStart, Machines, PoolRoom

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


@pytest.mark.parametrize(
    ("machines", "devices", "shapes"),
    [
        (4, 8, [(1, 1), (1, 8), (2, 8), (4, 8)]),
        (3, 4, [(1, 1), (1, 4), (2, 4), (3, 4)]),
        (1, 4, [(1, 1), (1, 4)]),
        (2, 1, [(1, 1), (2, 1)]),
        (0, 4, []),
    ],
)
def test_starts_are_asked_for_one_device_and_for_whole_machines(machines, devices, shapes) -> None:
    assert list(PoolRoom((Machines(Device(), devices, (0,) * machines),)).shapes()) == shapes


@pytest.mark.parametrize(
    ("machines", "devices", "found"),
    [(1, 1, 0), (1, 2, 1), (1, 4, 1), (2, 1, 2), (3, 4, 3), (1, 5, None)],
)
def test_a_start_is_that_of_the_smallest_job_that_is_as_large(machines, devices, found) -> None:
    now = datetime.now(UTC)
    starts = tuple(ForetoldStart(*shape, now + timedelta(hours=1), now) for shape in ROOM.shapes())
    room = PoolRoom((FEW, MANY), starts=starts)
    assert room.start_of(machines, devices) == (None if found is None else starts[found])

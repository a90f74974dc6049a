"""The wires of an emulated cluster: who waits for whom, and how long a transfer takes."""

import time
from pathlib import Path

import pytest

from backend.cluster.cluster import Cluster, Level
from workers.runtime.emulated.wires import Terms, Wires

CLUSTER = Cluster((Level(2, 1e6), Level(2, 1e3, 0.5)))
SCALE, SHARE = 10.0, 0.01
TERMS = Terms(CLUSTER, (0, 1, 2, 3), SCALE, SHARE)


@pytest.fixture
def wires(tmp_path: Path) -> list[Wires]:
    return [Wires(tmp_path / "wires", rank, TERMS) for rank in range(4)]


def seconds(num_bytes: float, bandwidth: float) -> float:
    """Here, for what is really sent of a tensor."""
    return SCALE * num_bytes / SHARE / bandwidth


def test_a_transfer_takes_its_bytes_at_full_size_and_the_latency(wires: list[Wires]) -> None:
    before = time.monotonic()
    arrival = wires[0].carry(2, 10)
    taken = seconds(10, 1e3) + SCALE * 0.5
    assert before + taken <= arrival <= time.monotonic() + taken


def test_a_server_has_one_wire_out_for_all_its_devices(wires: list[Wires]) -> None:
    first = wires[0].carry(2, 10)
    second = wires[1].carry(3, 10)
    assert second == pytest.approx(first + seconds(10, 1e3))


def test_the_ways_there_and_back_are_two_wires(wires: list[Wires]) -> None:
    there = wires[0].carry(2, 10)
    back = wires[2].carry(0, 10)
    assert back - there < seconds(10, 1e3) / 2


def test_inside_a_server_every_pair_has_its_own(wires: list[Wires]) -> None:
    wires[0].carry(2, 1000)
    arrival = wires[0].carry(1, 10)
    assert arrival < time.monotonic() + 1.5 * seconds(10, 1e6)


def test_a_sum_begins_when_the_last_has_come_and_lasts_a_ring(wires: list[Wires]) -> None:
    numbers = [each.come() for each in wires]
    last = time.monotonic()
    ends = [each.ring(numbers[0], (0, 1, 2, 3), 40) for each in wires]
    ring = 2 * 3 * (seconds(10, 1e3) + SCALE * 0.5)
    assert numbers == [0] * 4
    assert max(ends) == pytest.approx(last + ring, abs=0.2)
    assert min(ends) == pytest.approx(max(ends), abs=0.2)


def test_the_next_sum_waits_for_the_wire_of_the_one_before(wires: list[Wires]) -> None:
    for each in wires:
        each.come(), each.come()
    first = [each.ring(0, (0, 1, 2, 3), 40) for each in wires]
    second = [each.ring(1, (0, 1, 2, 3), 40) for each in wires]
    assert max(second) >= max(first) + seconds(2 * 3 / 4 * 40, 1e3) - 0.2

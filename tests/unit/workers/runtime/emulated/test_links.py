"""The links of an emulated cluster: who waits for whom, and how long a transfer takes."""

import time
from pathlib import Path

import pytest

from backend.cluster.cluster import Cluster, Level
from workers.runtime.emulated.links import EmulatedLinks, LinkTerms

CLUSTER = Cluster((Level(2, 1e6), Level(2, 1e3, 0.5)))
SCALE, SHARE = 10.0, 0.01
TERMS = LinkTerms(CLUSTER, (0, 1, 2, 3), SCALE, SHARE)


@pytest.fixture
def links(tmp_path: Path) -> list[EmulatedLinks]:
    return [EmulatedLinks(tmp_path / "links", rank, TERMS) for rank in range(4)]


def seconds(num_bytes: float, bandwidth: float) -> float:
    """Here, for what is really sent of a tensor."""
    return SCALE * num_bytes / SHARE / bandwidth


def test_a_transfer_takes_its_bytes_at_full_size_and_the_latency(
    links: list[EmulatedLinks],
) -> None:
    before = time.monotonic()
    arrival = links[0].send(2, 10)
    taken = seconds(10, 1e3) + SCALE * 0.5
    assert before + taken <= arrival <= time.monotonic() + taken


def test_a_server_has_one_link_out_for_all_its_devices(links: list[EmulatedLinks]) -> None:
    first = links[0].send(2, 10)
    second = links[1].send(3, 10)
    assert second == pytest.approx(first + seconds(10, 1e3))


def test_the_ways_there_and_back_are_two_links(links: list[EmulatedLinks]) -> None:
    there = links[0].send(2, 10)
    back = links[2].send(0, 10)
    assert back - there < seconds(10, 1e3) / 2


def test_inside_a_server_every_pair_has_its_own(links: list[EmulatedLinks]) -> None:
    links[0].send(2, 1000)
    arrival = links[0].send(1, 10)
    assert arrival < time.monotonic() + 1.5 * seconds(10, 1e6)


def test_a_sum_begins_when_the_last_has_come_and_lasts_a_ring(links: list[EmulatedLinks]) -> None:
    numbers = [each.join() for each in links]
    last = time.monotonic()
    ends = [each.collective(numbers[0], (0, 1, 2, 3), 40) for each in links]
    ring = 2 * 3 * (seconds(10, 1e3) + SCALE * 0.5)
    assert numbers == [0] * 4
    assert max(ends) == pytest.approx(last + ring, abs=0.2)
    assert min(ends) == pytest.approx(max(ends), abs=0.2)


def test_the_next_sum_waits_for_the_link_of_the_one_before(links: list[EmulatedLinks]) -> None:
    for each in links:
        each.join(), each.join()
    first = [each.collective(0, (0, 1, 2, 3), 40) for each in links]
    second = [each.collective(1, (0, 1, 2, 3), 40) for each in links]
    assert max(second) >= max(first) + seconds(2 * 3 / 4 * 40, 1e3) - 0.2

"""Links between registered nodes are measured by real processes of real agents."""

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from backend.bootstrap import Backend, connect
from backend.cluster.cluster import Device
from backend.errors import InvalidInput
from backend.links.link_test import LinkState, LinkTest
from backend.settings import Settings
from tests.migrated import migrated
from workers.links.participant import Participant

PAIR = (Device("cpu"), Device("cpu"))
LIMIT = 120.0


@pytest.fixture
def backend(tmp_path: Path) -> Iterator[Backend]:
    settings = Settings(home=tmp_path / "home", node="a", lease=300)
    migrated(settings)
    found = connect(settings)
    yield found
    found.close()


def play(backend: Backend, *nodes: str) -> LinkTest:
    """Each node takes part as its agent would, all at once."""
    for node in nodes:
        backend.nodes.beat(node, PAIR)
    asked = backend.links.ask(backend.nodes.list())
    assert [member.node for member in asked.members] == sorted(nodes)
    parts = []
    for node in nodes:
        (test,) = backend.links.waiting(node)
        part = Participant(backend.links, test, node, "127.0.0.1", lambda: True)
        parts.append(threading.Thread(target=part.play, daemon=True))
        parts[-1].start()
    for thread in parts:
        thread.join(LIMIT)
    return backend.links.tests.get(asked.id)


@pytest.mark.slow
def test_devices_of_one_node(backend: Backend) -> None:
    found = play(backend, "a")
    assert found.state is LinkState.DONE, found.error
    (link,) = found.links
    assert (link.one, link.other) == (0, 1)
    assert 1e6 < link.bandwidth < 1e12
    assert 0 < link.latency < 1
    assert backend.links.tests.latest() == found
    assert not backend.links.waiting("a")


@pytest.mark.slow
def test_every_pair_of_two_nodes(backend: Backend) -> None:
    found = play(backend, "b", "a")
    assert found.state is LinkState.DONE, found.error
    assert [(link.one, link.other) for link in found.links] == [
        (0, 1),
        (0, 2),
        (0, 3),
        (1, 2),
        (1, 3),
        (2, 3),
    ]
    assert found.cluster().num_devices == 4


def test_a_node_that_does_not_come_is_named(backend: Backend) -> None:
    for node in ("a", "b"):
        backend.nodes.beat(node, PAIR)
    asked = backend.links.ask(backend.nodes.list())
    backend.links.patience = 0.5
    Participant(backend.links, asked, "b", "127.0.0.1", lambda: True).play()
    found = backend.links.tests.get(asked.id)
    assert (found.state, found.error) == (LinkState.FAILED, "a did not join")


def test_a_test_that_nobody_carries_fails_by_itself(backend: Backend) -> None:
    backend.nodes.beat("a", PAIR)
    asked = backend.links.ask(backend.nodes.list())
    backend.links.patience = 0.05
    deadline = time.monotonic() + LIMIT
    while backend.links.waiting("a") and time.monotonic() < deadline:
        time.sleep(0.05)
    assert "not all of its nodes joined" in backend.links.tests.get(asked.id).error


def test_one_device_has_no_links(backend: Backend) -> None:
    backend.nodes.beat("a", PAIR[:1])
    with pytest.raises(InvalidInput, match="1 devices are registered"):
        backend.links.ask(backend.nodes.list())


def test_what_comes_after_the_end_changes_nothing(backend: Backend) -> None:
    backend.nodes.beat("a", PAIR)
    asked = backend.links.ask(backend.nodes.list())
    backend.links.tests.fail(asked.id, "stopped")
    backend.links.tests.finish(asked.id, ())
    backend.links.tests.meet(asked.id, "host:1")
    found = backend.links.tests.get(asked.id)
    assert (found.state, found.error, found.rendezvous) == (LinkState.FAILED, "stopped", "")

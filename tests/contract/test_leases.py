"""A task that is one process's at a time: by the database's clock, on every database."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from backend.bootstrap import Backend
from backend.definitions.definition import Definition
from backend.runs.dispatch.leases import NodeTaken
from backend.runs.request.spec import ProfileSpec
from backend.services.runs.dispatch import DispatchService
from backend.services.runs.stores import Stores


def agent(backend: Backend, stores: Stores, place: str, lease: float = 60.0) -> DispatchService:
    return DispatchService(stores, backend.queue, backend.notifier, lease, place)


def test_one_holds_it_until_it_ends_or_drops_it(stores: Stores):
    take = stores.leases.take
    assert take("task", "a", 60.0) == "a"
    assert take("task", "b", 60.0) == "a"
    assert take("other", "b", 60.0) == "b"
    assert take("task", "a", -1.0) == "a"
    assert take("task", "b", 60.0) == "b"
    stores.leases.drop("task", "a")
    assert take("task", "a", 60.0) == "b"
    stores.leases.drop("task", "b")
    assert take("task", "a", 60.0) == "a"


def test_of_many_at_once_one_gets_it(stores: Stores):
    names = [f"agent {number}" for number in range(8)]
    with ThreadPoolExecutor(8) as pool:
        holders = set(pool.map(lambda name: stores.leases.take("task", name, 60.0), names))
    assert len(holders) == 1
    assert holders < set(names)


def test_two_agents_of_one_name_are_told_apart(backend: Backend, stores: Stores):
    first, second = agent(backend, stores, "home 1"), agent(backend, stores, "home 2")
    first.go_by("gpu1")
    first.go_by("gpu1")
    second.go_by("gpu2")
    with pytest.raises(NodeTaken, match="belongs to the agent of home 1") as caught:
        second.go_by("gpu1")
    assert "STAGEFLOW_NODE" in caught.value.advice
    assert "60 s" in caught.value.advice
    first.leave("gpu1")
    second.go_by("gpu1")


def test_one_reaper_at_a_time(backend: Backend, stores: Stores, definition: Definition):
    reaper, other = agent(backend, stores, "home 1"), agent(backend, stores, "home 2")
    assert not reaper.expire()
    run = backend.runs.submit(ProfileSpec(definition.id))
    attempt = backend.dispatch.claim(run.id, "here")
    assert attempt is not None
    stores.runs.beat(attempt.fence, lease=-1.0)
    assert not other.expire()
    assert list(reaper.expire()) == [run.id]
    reaper.leave("here")
    assert not other.expire()
    assert not reaper.expire()
    assert stores.leases.take("reaper", "home 1", 1.0) == "home 2"

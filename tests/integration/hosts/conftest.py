"""Hosts for the tests of this room."""

from collections.abc import Callable, Iterator

import pytest

from backend.runs.request.spec import TrainSpec
from backend.runs.states import RunState
from tests.integration.hosts.rig import LEASE, Hosts, may_make_networks
from tests.integration.hosts.slow_training import curve, training


@pytest.fixture(scope="module")
def new_hosts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., Hosts]]:
    """Make so many hosts; they are taken away when the file is done. No agent may have met an
    exception that nobody expected."""
    if not may_make_networks():
        pytest.skip("no right to make network namespaces here")
    made: list[Hosts] = []

    def make(number: int, lease: float = LEASE) -> Hosts:
        made.append(Hosts(tmp_path_factory.mktemp("hosts"), number, lease))
        return made[-1]

    yield make
    for hosts in made:
        hosts.close()
        assert not hosts.tracebacks()


@pytest.fixture(scope="module")
def spec(hosts: Hosts) -> TrainSpec:
    """What the `hosts` of a file train."""
    return training(hosts)


@pytest.fixture(scope="module")
def undisturbed(hosts: Hosts, spec: TrainSpec) -> list[tuple[int, float]]:
    """Its losses where nothing happens to it."""
    run = hosts.finished(spec)
    assert run.state is RunState.SUCCEEDED, (run.error, hosts.logs())
    return curve(hosts, run.id)

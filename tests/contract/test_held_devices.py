"""No device is held twice, by whatever races, and a run has all of its devices or none."""

from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest

from backend.bootstrap import Backend
from backend.cluster.cluster import Device
from backend.planning.plan import Partition, Plan, Stage
from backend.runs.request.spec import TrainSpec
from backend.runs.run import Run, RunError, RunSummary
from backend.runs.states import RunState
from tests.contract.racing import claimed

CORES = (Device("cpu", 1e9),) * 8


@pytest.fixture
def ask(backend: Backend):
    """Submit a run of so many devices, on named nodes or on any."""
    for name in "ab":
        backend.nodes.beat(name, CORES)
    definition = backend.definitions.add("m.py", b"def model():\n    return None\n")

    def submit(devices: int, *nodes: str, **changes: bool) -> Run:
        spread = max(1, len(nodes))
        numbers = [n % spread * len(CORES) + n // spread for n in range(devices)]
        stages = tuple(Stage(n, n + 1, (device,)) for n, device in enumerate(numbers))
        plan = Plan("", Partition(stages), "pipedream", 4)
        return backend.runs.submit(TrainSpec(definition.id, plan, nodes=nodes, **changes))

    return submit


def test_runs_share_a_node_each_on_devices_of_its_own(backend: Backend, ask) -> None:
    first, second, third = ask(3), ask(1), ask(5)
    one, two = (backend.dispatch.claim(run.id, "a") for run in (first, second))
    assert one is not None
    assert two is not None
    assert (one.shares[0].held, two.shares[0].held) == ((0, 1, 2), (3,))
    assert backend.dispatch.claim(third.id, "a") is None  # four are left
    assert backend.runs.get(third.id).state is RunState.QUEUED
    one.finish(RunState.CANCELLED, RunSummary())
    three = backend.dispatch.claim(third.id, "a")
    assert three is not None
    assert three.shares[0].devices == (0, 1, 2, 5, 4)  # 3 is taken
    assert backend.runs.held()["a"] == {3: second.id} | dict.fromkeys((0, 1, 2, 4, 5), third.id)


def test_two_runs_share_two_nodes(backend: Backend, ask) -> None:
    runs = [ask(6, "a", "b"), ask(6, "a", "b"), ask(6, "a", "b")]
    taken = [backend.dispatch.claim(run.id, "a") for run in runs]
    assert [attempt is not None for attempt in taken] == [True, True, False]
    assert [share.held for share in taken[1].shares] == [(3, 4, 5), (3, 4, 5)]
    for attempt in taken[:2]:
        backend.dispatch.summon(attempt, "10.0.0.1", 4711, "secret")
    asked = set()
    while (found := backend.dispatch.reservations.summons("b")) is not None:
        assert backend.dispatch.reservations.answered(found, "b")
        asked.add(found.run_id)
        assert backend.dispatch.devices(found.run_id, found.attempt, "b") in ((0, 1, 2), (3, 4, 5))
    assert asked == {runs[0].id, runs[1].id}


def test_a_run_that_is_alone_shares_with_nobody(backend: Backend, ask) -> None:
    small, alone = ask(1), ask(1, whole_nodes=True)
    attempt = backend.dispatch.claim(small.id, "a")
    assert attempt is not None
    assert backend.dispatch.claim(alone.id, "a") is None
    attempt.finish(RunState.CANCELLED, RunSummary())
    assert backend.dispatch.claim(alone.id, "a").shares[0].held == tuple(range(8))
    assert backend.dispatch.claim(ask(1).id, "a") is None


def test_devices_are_free_once_their_attempt_is_over(backend: Backend, ask) -> None:
    run = ask(8)
    attempt = backend.dispatch.claim(run.id, "a")
    assert attempt is not None
    attempt.finish(RunState.FAILED, RunSummary(), RunError("ModelRaised", "it broke"))
    assert backend.runs.held() == {}
    assert backend.dispatch.claim(ask(8).id, "a") is not None


def test_a_large_run_is_not_starved(backend: Backend, ask) -> None:
    small = [backend.dispatch.claim(ask(2).id, "a") for _ in range(3)]
    backend.nodes.leave("b")
    large, later = ask(8), ask(1)
    assert backend.dispatch.waiting_for("a") == []
    assert backend.runs.line().turns[later.id].behind == large.id
    for attempt in small:
        assert backend.dispatch.waiting_for("a") == []
        attempt.finish(RunState.CANCELLED, RunSummary())
    assert backend.dispatch.waiting_for("a") == [large.id]


def test_threads_that_race_hold_no_device_twice(backend: Backend, ask) -> None:
    runs = [ask(n % 3 + 1) for n in range(12)]
    with ThreadPoolExecutor(6) as pool:
        taken = list(pool.map(lambda run: backend.dispatch.claim(run.id, "a"), runs))
    held = Counter(d for each in taken if each for d in each.shares[0].held)
    assert set(held.values()) == {1}
    assert set(held) <= set(range(8))
    free = 8 - len(held)
    waiting = [run for run, attempt in zip(runs, taken, strict=True) if attempt is None]
    assert all(run.spec.plan.partition.num_devices > free for run in waiting)


def test_processes_that_race_hold_no_device_twice(backend: Backend, ask) -> None:
    """Every one claims all runs for each of two nodes, in an order of its own."""
    runs = [ask(n % 4 + 1) for n in range(40)]
    got = claimed(backend, ("a", "b", "a", "b"), [run.id for run in runs])
    held = backend.runs.held()
    by_run = Counter(run for there in held.values() for run in there.values())
    live = [run for run in backend.runs.several([r.id for r in runs]) if run.state.is_live]
    assert got == sorted(f"{run.id} 1" for run in live)
    assert by_run == {run.id: run.spec.plan.partition.num_devices for run in live}
    for run in backend.runs.several([r.id for r in runs]):
        if run.state is RunState.QUEUED:  # there is no room for it: nobody gave up too early
            needed = run.spec.plan.partition.num_devices
            assert all(needed > 8 - len(held.get(node, {})) for node in "ab")

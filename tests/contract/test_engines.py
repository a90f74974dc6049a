"""Every cluster keeps the promises of `Engine`: real jobs on this machine as a cluster of its own,
on a real Slurm, and as the pods of an API server of the tests."""

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from backend.cluster.cluster import Device
from backend.runs.pools.job import JobOrder, JobState
from tests.contract.clusters import DEVICES, MACHINES, Cluster, Made, Ways
from tests.contract.kubelet import kubernetes_engine
from tests.slurm import wait
from workers.pools.engine import OrderRefused
from workers.pools.local import LocalEngine
from workers.pools.slurm.engine import SlurmEngine

HOUR = timedelta(hours=1)
IN_PODS = Ways("SIGTERM", outputs=1, refuses=False, foretells=False)
KINDS = {"local": Ways(), "slurm": Ways(), "kubernetes": IN_PODS}


@pytest.fixture(scope="module", params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture(scope="module")
def engines(
    kind: str, request: pytest.FixtureRequest
) -> Iterator[Callable[[Path], tuple[Made, Made]]]:
    """Of so many machines and devices, and of others, whose jobs keep them from no room."""
    with ExitStack() as stack:
        if kind == "local":
            each = (Device(),) * DEVICES
            yield lambda folder: (
                lambda: LocalEngine(folder / "first", MACHINES, each, {}),
                lambda: LocalEngine(folder / "other", 1, each, {}),
            )
        elif kind == "slurm":
            request.getfixturevalue("slurm")
            yield lambda folder: (
                lambda: SlurmEngine("pair", folder, {}),
                lambda: SlurmEngine("cores", folder, {}),
            )
        else:

            def made(folder: Path) -> Made:
                folder.mkdir()
                engine = stack.enter_context(kubernetes_engine(folder, devices=DEVICES))
                return lambda: engine

            yield lambda folder: (made(folder / "first"), made(folder / "other"))


@pytest.fixture(scope="module")
def warned(
    kind: str,
    engines: Callable[[Path], tuple[Made, Made]],
    tmp_path_factory: pytest.TempPathFactory,
) -> tuple[Cluster, JobOrder]:
    """A job that is begun before the tests: some clusters look at the time twice a minute."""
    folder = tmp_path_factory.mktemp("warned")
    cluster = Cluster(engines(folder)[1], folder, KINDS[kind])
    order = cluster.order(seconds=60, warning=58)
    cluster.made().submit(order)
    return cluster, order


@pytest.fixture
def cluster(
    kind: str, engines: Callable[[Path], tuple[Made, Made]], warned: object, tmp_path: Path
) -> Iterator[Cluster]:
    """Jobs that a test leaves are ended."""
    cluster = Cluster(engines(tmp_path)[0], tmp_path, KINDS[kind])
    yield cluster
    cluster.clear()


def test_a_job_runs_its_command_on_each_machine_and_is_gone(cluster: Cluster) -> None:
    order = cluster.order("sh", "-c", "echo here", nodes=MACHINES)
    assert cluster.made().submit(order)
    cluster.until(JobState.GONE, order)
    assert cluster.made().output(order.name).splitlines().count("here") == cluster.ways.outputs


def test_a_running_job_has_its_machines_and_its_start(cluster: Cluster) -> None:
    order = cluster.order(nodes=MACHINES)
    job = cluster.run(order)
    seen = cluster.seen(order)
    assert (seen.engine_id, seen.state, seen.advice) == (job, JobState.RUNNING, "")
    assert len(set(seen.hosts)) == MACHINES
    assert seen.starts_at
    assert abs(seen.starts_at - datetime.now(UTC)) < HOUR


def test_words_of_a_command_arrive_as_they_are(cluster: Cluster) -> None:
    words = ["a b", "", "$HOME", "'\"`\\", "*", "zwei\nZeilen", "#SBATCH --nodes=3"]
    order = cluster.order(sys.executable, "-Ic", "import sys; print(sys.argv[1:])", *words)
    cluster.made().submit(order)
    cluster.until(JobState.GONE, order)
    assert repr(words) in cluster.made().output(order.name)


def test_a_name_that_is_there_already_is_left_alone(cluster: Cluster) -> None:
    order = cluster.order()
    job = cluster.run(order)
    assert cluster.made().submit(order) == job
    cluster.made().end(order.name)
    cluster.until(JobState.GONE, order)
    assert cluster.began() == 1


def test_a_name_whose_job_ended_can_be_submitted_again(cluster: Cluster) -> None:
    order = cluster.order()
    for _ in range(2):
        cluster.run(order)
        cluster.made().end(order.name)
        cluster.until(JobState.GONE, order)
    assert cluster.began() == 2


def test_what_has_no_room_waits_for_it(cluster: Cluster) -> None:
    first, second = cluster.all(), cluster.order()
    cluster.run(first)
    job = cluster.made().submit(second)
    if cluster.ways.foretells:
        wait(lambda: cluster.seen(second).reason)
    assert cluster.made().submit(second) == job
    assert cluster.seen(second).state is JobState.WAITING
    assert (cluster.seen(second).hosts, cluster.seen(second).advice) == ((), "")
    cluster.made().end(first.name)
    cluster.until(JobState.RUNNING, second)


def test_a_waiting_job_that_is_ended_never_runs(cluster: Cluster) -> None:
    first, second = cluster.all(), cluster.order()
    cluster.run(first)
    cluster.made().submit(second)
    cluster.made().end(second.name)
    cluster.until(JobState.GONE, second)
    assert cluster.state(first) is JobState.RUNNING
    cluster.made().end(first.name)
    cluster.until(JobState.GONE, first)
    assert cluster.began() == first.nodes


def test_agents_of_a_running_job_are_told_to_end(cluster: Cluster) -> None:
    order = cluster.order(nodes=MACHINES)
    cluster.run(order)
    cluster.made().end(order.name)
    cluster.until(JobState.GONE, order)
    assert cluster.noted("SIGTERM") == MACHINES


def test_to_end_what_is_not_there_is_nothing(cluster: Cluster) -> None:
    cluster.made().end("nobody")
    assert "nobody" not in cluster.made().look()


def test_more_devices_than_a_machine_has_are_refused_or_waited_for(cluster: Cluster) -> None:
    order = cluster.order(devices=DEVICES + 1)
    if not cluster.ways.refuses:
        cluster.made().submit(order)
        assert cluster.state(order) is JobState.WAITING
        return
    for ask in (cluster.made().submit, cluster.made().estimate):
        with pytest.raises(OrderRefused) as refusal:
            ask(order)
        assert refusal.value.advice
    assert cluster.state(order) is JobState.GONE


def test_a_job_with_room_would_start_now(cluster: Cluster) -> None:
    order = cluster.all()
    expected = cluster.made().estimate(order)
    assert bool(expected) is cluster.ways.foretells
    if expected:
        assert abs(expected - datetime.now(UTC)) < HOUR
    assert order.name not in cluster.made().look()


def test_room_before_a_job_in_it_and_after(cluster: Cluster) -> None:
    order, total = cluster.order(devices=2), MACHINES * DEVICES
    assert (cluster.made().room().total, cluster.made().room().free) == (total, total)
    assert len(cluster.made().room().machines) == 1
    cluster.run(order)
    assert (cluster.made().room().total, cluster.made().room().free) == (total, total - 2)
    cluster.made().end(order.name)
    cluster.until(JobState.GONE, order)
    wait(lambda: cluster.made().room().free == total)


def test_of_a_long_output_the_end_is_told(cluster: Cluster) -> None:
    order = cluster.order(sys.executable, "-Ic", "print('ä' * 9000 + 'end')")
    assert cluster.made().output(order.name) == ""
    cluster.made().submit(order)
    cluster.until(JobState.GONE, order)
    output = cluster.made().output(order.name)
    assert len(output) <= 4000
    assert output.rstrip().endswith("äend")


def test_agents_are_warned_ahead_of_their_time(warned: tuple[Cluster, JobOrder]) -> None:
    cluster, order = warned
    cluster.until(JobState.GONE, order)
    told = {word: cluster.noted(word) for word in ("SIGUSR1", "SIGTERM")}
    assert told == {"SIGUSR1": 0, "SIGTERM": 0} | {cluster.ways.warning: 1}

"""Pools and their jobs, on both databases."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from backend.bootstrap import Backend, connect
from backend.cluster.cluster import Device
from backend.definitions.definition import Definition
from backend.errors import InvalidInput, NotFound
from backend.people.project import Quota
from backend.planning.plan import Partition, Plan, Stage
from backend.runs.dispatch.leases import NodeTaken
from backend.runs.pools.job import JobState, Seen
from backend.runs.pools.pool import AHEAD, TRIES
from backend.runs.pools.room import Machines, PoolRoom
from backend.runs.request.spec import PoolSpec, ProfileSpec, TrainSpec
from backend.runs.states import RunState

ROOM = PoolRoom((Machines(Device("h100", 80e9), 4, (4, 0, 3)),), 3600.0)
STARTS = datetime(2030, 1, 1, 3, tzinfo=UTC)


@pytest.fixture
def spec(backend: Backend, definition: Definition) -> ProfileSpec:
    backend.pools.beat("gpu", "slurm", ROOM)
    return ProfileSpec(definition.id, pool=PoolSpec("gpu"))


def two_machines(definition_id: int, machines: int = 2) -> TrainSpec:
    plan = Plan("", Partition((Stage(0, 1, (0,)), Stage(1, 2, (1,)))), "pipedream", 4)
    return TrainSpec(definition_id, plan, pool=PoolSpec("gpu", machines))


def test_one_process_submits_for_a_pool(backend: Backend) -> None:
    backend.pools.go_by("gpu")
    backend.pools.go_by("gpu")
    other = connect(backend.settings.model_copy(update={"node": "elsewhere"}))
    with pytest.raises(NodeTaken) as caught:
        other.pools.go_by("gpu")
    assert "here" in str(caught.value)
    backend.pools.leave("gpu")
    other.pools.go_by("gpu")
    other.close()


def test_a_pool_tells_its_room_and_keeps_it_while_the_cluster_is_away(backend: Backend) -> None:
    backend.pools.beat("gpu", "slurm", ROOM)
    backend.pools.beat("gpu", "slurm", None, "the controller does not answer")
    (pool,) = backend.pools.list()
    assert pool.alive
    assert (pool.room, pool.fault) == (ROOM, "the controller does not answer")
    assert (pool.room.total, pool.room.free) == (12, 7)
    backend.pools.beat("gpu", "slurm", ROOM)
    assert backend.pools.list()[0].fault == ""


def test_a_run_for_a_pool_is_of_no_node(backend: Backend, spec: ProfileSpec) -> None:
    run = backend.runs.submit(spec)
    backend.nodes.beat("here", (Device("cpu"),))
    assert backend.dispatch.waiting_for("here") == []
    assert backend.dispatch.claim(run.id, "here") is None
    backend.nodes.beat(f"run-{run.id}.0", (Device("cpu"),), run_id=run.id)
    attempt = backend.dispatch.claim(run.id, f"run-{run.id}.0")
    assert attempt is not None
    assert attempt.run.node == f"run-{run.id}.0"


def test_an_agent_for_one_run_gets_no_other(backend: Backend, definition: Definition) -> None:
    backend.nodes.beat("run-99.0", (Device("cpu"),), run_id=99)
    run = backend.runs.submit(ProfileSpec(definition.id))
    assert run.id not in backend.runs.line().turns
    assert [node.name for node in backend.nodes.alive()] == []
    assert [node.name for node in backend.nodes.alive(99)] == ["run-99.0"]


def test_the_plan_goes_over_the_machines_of_the_job(backend: Backend, definition: Definition):
    backend.pools.beat("gpu", "slurm", ROOM)
    run = backend.runs.submit(two_machines(definition.id))
    first, second = (f"run-{run.id}.{place}" for place in range(2))
    backend.nodes.beat(first, (Device("cpu"),), run_id=run.id)
    assert backend.dispatch.claim(run.id, first) is None  # the second one has not come
    backend.nodes.beat(second, (Device("cpu"),), run_id=run.id)
    assert backend.dispatch.claim(run.id, second) is None  # the first one leads
    attempt = backend.dispatch.claim(run.id, first)
    assert attempt is not None
    assert [(s.node, s.ranks, s.held) for s in attempt.shares] == [
        (first, (0,), (0,)),
        (second, (1,), (0,)),
    ]


def test_jobs_are_written_down_in_the_order_of_the_queue_a_few_ahead(
    backend: Backend, spec: ProfileSpec
) -> None:
    runs = [backend.runs.submit(spec) for _ in range(AHEAD + 2)]
    backend.runs.submit(replace(spec, pool=None))
    begun = backend.pools.begin("gpu")
    assert [run.id for _, run in begun] == [run.id for run in runs[:AHEAD]]
    assert [job.number for job, _ in begun] == [1] * AHEAD
    assert backend.pools.begin("gpu") == []
    backend.pools.seen(begun[0][0], Seen("41", JobState.RUNNING, hosts=("n1", "n2")))
    assert [run.id for _, run in backend.pools.begin("gpu")] == [runs[AHEAD].id]
    assert backend.pools.counts() == {"gpu": {JobState.SUBMITTING: AHEAD, JobState.RUNNING: 1}}
    assert backend.pools.begin("other") == []


def test_what_a_quota_keeps_back_gets_no_job(backend: Backend, spec: ProfileSpec) -> None:
    run = backend.runs.submit(spec)
    backend.projects.limit(run.project_id, Quota(running=0))
    assert backend.pools.begin("gpu") == []
    assert "may" in (backend.runs.why_waiting(backend.runs.get(run.id)) or "")


def test_people_read_what_their_run_waits_for(backend: Backend, spec: ProfileSpec) -> None:
    run = backend.runs.submit(spec)

    def why() -> str:
        return backend.runs.why_waiting(backend.runs.get(run.id)) or ""

    assert "until the pool gpu submits its job" in why()
    ((job, _),) = backend.pools.begin("gpu")
    assert "is being submitted to gpu" in why()
    backend.pools.seen(job, Seen("41", JobState.WAITING, "Resources", starts_at=STARTS))
    assert (
        "Its job 41 waits in gpu: Resources; gpu expects to start it on 01 Jan at 03:00 UTC."
        in why()
    )
    backend.pools.seen(job, Seen("41", JobState.HELD, "JobHeldUser", "scontrol release 41"))
    assert "is held in gpu (JobHeldUser): scontrol release 41" in why()
    backend.pools.seen(job, Seen("41", JobState.RUNNING, hosts=("n1",)))
    assert "Its job 41 starts on n1." in why()


def test_jobs_that_end_before_the_run_began_fail_it_with_what_they_printed(
    backend: Backend, spec: ProfileSpec, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("backend.runs.pools.pool.RETRY", -STARTS.utcoffset())
    run = backend.runs.submit(spec)
    for number in range(1, TRIES + 1):
        ((job, _),) = backend.pools.begin("gpu")
        assert job.number == number
        backend.pools.ended(job, output=f"no python here {number}")
    failed = backend.runs.get(run.id)
    assert failed.state is RunState.FAILED
    assert failed.error is not None
    assert (failed.error.kind, failed.error.detail) == ("JobFailed", f"no python here {TRIES}")
    assert failed.error.advice


def test_a_job_that_ends_after_its_attempt_fails_nothing(
    backend: Backend, spec: ProfileSpec
) -> None:
    """The verdict is the agents' alone, whatever the cluster says of the job."""
    run = backend.runs.submit(spec)
    ((job, _),) = backend.pools.begin("gpu")
    node = f"run-{run.id}.0"
    backend.nodes.beat(node, (Device("cpu"),), run_id=run.id)
    attempt = backend.dispatch.claim(run.id, node)
    assert attempt is not None
    for _ in range(TRIES):
        backend.pools.ended(job, "NODE_FAIL", "gone")
    assert backend.runs.get(run.id).state is RunState.STARTING
    (kept,) = backend.pools.jobs([run.id])[run.id]
    assert (kept.state, kept.output) == (JobState.GONE, "")
    assert backend.pools.unfinished("gpu") == []


def test_a_deleted_run_takes_its_jobs_along(backend: Backend, spec: ProfileSpec) -> None:
    run = backend.runs.submit(spec)
    backend.pools.begin("gpu")
    backend.runs.cancel(run.id)
    backend.runs.delete(run.id)
    assert backend.pools.jobs([run.id]) == {}


def test_what_no_pool_can_carry_is_refused(backend: Backend, definition: Definition, spec) -> None:
    with pytest.raises(NotFound) as caught:
        backend.runs.submit(replace(spec, pool=PoolSpec("cpu")))
    assert "gpu" in caught.value.advice
    training = two_machines(definition.id)
    for faulty in (
        replace(spec, pool=PoolSpec("gpu", nodes=2)),
        replace(spec, pool=PoolSpec("gpu", nodes=0)),
        replace(spec, pool=PoolSpec("gpu", seconds=-1.0)),
        replace(training, nodes=("here",)),
        replace(training, pool=PoolSpec("gpu", 1, devices=1)),
        replace(training, emulate=1.0, plan_id=1),
    ):
        with pytest.raises((InvalidInput, NotFound)):
            backend.runs.submit(faulty)
    assert backend.runs.count() == {}

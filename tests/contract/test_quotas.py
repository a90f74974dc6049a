"""What a project may have at once is held to, also by many at once, whatever the database."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from backend.bootstrap import Backend
from backend.cluster.cluster import Device
from backend.people.project import Project, ProjectArchived, Quota, QuotaReached
from backend.planning.plan import Partition, Plan, Stage
from backend.runs.attempts.checkpoints import CheckpointFile, Mark
from backend.runs.request.spec import ProfileSpec, TrainSpec
from backend.runs.run import Run, RunSummary
from backend.runs.states import RunState
from backend.services.runs.occupancy import queue
from tests.app.seed import a_profile, plan_for

PLAN = Plan("even", Partition((Stage(0, 1, (0,)),)), "pipedream", 8)
CORES = (Device("cpu", 1e9),) * 4


@pytest.fixture
def inside(backend: Backend, vision: Project) -> Backend:
    return backend.within(vision.id)


def ask(inside: Backend, count: int) -> list[Run]:
    model = inside.definitions.add("net.py", b"def model():\n    return None\n")
    return [inside.runs.submit(ProfileSpec(model.id)) for _ in range(count)]


def limit(backend: Backend, project: Project, **quota: float) -> None:
    backend.projects.limit(project.id, Quota(**quota))


def test_no_more_runs_start_than_may_however_many_ask(
    backend: Backend, vision: Project, inside: Backend
):
    limit(backend, vision, running=2)
    runs = ask(inside, 6)

    def claim(number: int) -> bool:
        return backend.dispatch.claim(runs[number].id, f"node-{number}") is not None

    with ThreadPoolExecutor(6) as pool:
        taken = sum(pool.map(claim, range(6)))
    assert taken == 2
    assert backend.runs.count()[RunState.STARTING] == 2
    assert backend.dispatch.waiting_for("node-9") == []
    reasons = {each.reason for each in queue(_awake(backend))}
    assert reasons == {"The project Vision may have 2 live runs and has 2."}


def _awake(backend: Backend) -> "object":
    """The services with a queue that answers and a node that lives."""
    backend.nodes.beat("node-9")
    service = backend.runs
    service._queue = type("Answers", (), {"ping": lambda _: None})()
    return service


def test_devices_count_that_are_held(backend: Backend, vision: Project, inside: Backend):
    for node in ("a", "b"):
        backend.nodes.beat(node, CORES)
    limit(backend, vision, devices=1)
    first, second = ask(inside, 2)
    attempt = backend.dispatch.claim(first.id, "a")
    assert attempt is not None
    assert backend.dispatch.claim(second.id, "b") is None
    assert backend.runs.get(second.id).state is RunState.QUEUED
    attempt.running()
    attempt.finish(RunState.SUCCEEDED, RunSummary())
    assert backend.dispatch.claim(second.id, "b") is not None


def test_free_nodes_go_to_who_holds_least(
    backend: Backend, vision: Project, inside: Backend, run: Run
):
    early = [run, *[backend.runs.submit(run.spec) for _ in range(3)]]
    late = ask(inside, 2)
    assert backend.dispatch.waiting_for("a")[0] == early[0].id
    for node in ("a", "b", "c"):
        assert backend.dispatch.claim(backend.dispatch.waiting_for(node)[0], node) is not None
    started = [each.id for each in backend.runs.list().runs if each.state is RunState.STARTING]
    assert sorted(started) == [early[0].id, early[1].id, late[0].id]


def test_a_full_queue_refuses_and_takes_again(backend: Backend, vision: Project, inside: Backend):
    limit(backend, vision, queued=2)
    runs = ask(inside, 2)
    with pytest.raises(QuotaReached, match="2 runs of Vision are queued; 2 are allowed"):
        backend.runs.retry(backend.runs.cancel(ask_elsewhere(backend, runs[0])).id)
    backend.runs.cancel(runs[0].id)
    assert backend.runs.retry(runs[0].id).state is RunState.QUEUED


def ask_elsewhere(backend: Backend, run: Run) -> int:
    """A run of the same project while there is still room."""
    backend.projects.limit(run.project_id, Quota(queued=3))
    more = backend.runs.submit(run.spec)
    backend.runs.cancel(more.id)
    backend.projects.limit(run.project_id, Quota(queued=2))
    return more.id


def test_files_have_their_room(backend: Backend, vision: Project, inside: Backend):
    (run,) = ask(inside, 1)
    size = inside.definitions.list()[0].size
    limit(backend, vision, bytes=size + 100)
    with pytest.raises(QuotaReached, match="more do not fit"):
        inside.definitions.add("large.py", b"def model(): ...\n" + b"#" * 100)
    attempt = backend.dispatch.claim(run.id, "a")
    assert attempt is not None
    file = backend.settings.home / "result"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(b"x" * 200)
    attempt.artifact("result", file)  # what a run has made is never thrown away
    with pytest.raises(QuotaReached):
        backend.runs.submit(run.spec)
    limit(backend, vision)
    assert backend.runs.submit(run.spec)


def test_checkpoints_take_room_until_they_are_let_go(
    backend: Backend, vision: Project, inside: Backend
):
    model = inside.definitions.add("net.py", b"def model():\n    return None\n")
    run = inside.runs.submit(TrainSpec(model.id, PLAN))
    limit(backend, vision, bytes=model.size + 100)
    attempt = backend.dispatch.claim(run.id, "a")
    assert attempt is not None
    attempt.running()
    attempt.checkpoint(Mark(0, 8, 1), [file_of(40), file_of(30)], keep=1)
    assert backend.runs.submit(run.spec)
    attempt.checkpoint(Mark(0, 16, 2), [file_of(101)], keep=1)  # made by a run: never refused
    with pytest.raises(QuotaReached, match=f"use {model.size + 101} bytes of {model.size + 100}"):
        backend.runs.submit(run.spec)
    attempt.finish(RunState.SUCCEEDED, RunSummary())
    backend.runs.delete(run.id)
    assert backend.runs.submit(run.spec)


def file_of(size: int) -> CheckpointFile:
    return CheckpointFile(f"stage-{size}", size, "0" * 64)


def test_nothing_new_comes_into_an_archived_project_and_what_runs_goes_on(
    backend: Backend, vision: Project, inside: Backend
):
    first, second = ask(inside, 2)
    model = first.spec.definition_id
    profile = inside.profiles.add(a_profile(), model)
    backend.projects.archive(vision.id)
    for act in (
        lambda: backend.runs.submit(first.spec),
        lambda: inside.definitions.add("more.py", b"def model(): ...\n"),
        lambda: inside.profiles.add(a_profile(), model),
        lambda: plan_for(inside, profile),
    ):
        with pytest.raises(ProjectArchived, match="Vision is archived"):
            act()
    assert backend.dispatch.claim(first.id, "a") is not None
    assert backend.runs.cancel(second.id).state is RunState.CANCELLED
    backend.projects.archive(vision.id, False)
    assert plan_for(inside, profile).project_id == vision.id


def test_a_quota_is_kept_as_it_was_given(backend: Backend, vision: Project):
    quota = Quota(running=1, devices=2, queued=3, bytes=4, share=2.5)
    assert backend.projects.limit(vision.id, quota).quota == quota
    assert backend.projects.get(vision.id) == replace(vision, quota=quota)

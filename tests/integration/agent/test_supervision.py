"""One attempt with real processes and a real database: every end that it can have."""

import os
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from backend.bootstrap import Backend
from backend.runs.run import Run
from backend.runs.states import RunState
from backend.services.runs.attempt import Attempt
from backend.storage.errors import DatabaseUnreachable
from workers.pid import Pid
from workers.supervisor.ranks.orphans import remember

Queued = Callable[[str], Run]
Supervised = Callable[..., Run]
Living = Callable[[Path], list[psutil.Process]]

WORKS = """
import time
def work(rank, say, folder):
    say(Started(rank))
    print("hello from", rank)
    say(Progress("train", 1, 2))
    if rank == 1:
        say(Metrics("loss", (1, 2), (2.0, 1.0), (1.0, 2.0), 0))
        say(Metrics("loss", (3, 4), (0.5, 0.3), (3.0, 4.0), 1))
        say(Metrics("accuracy", (4,), (0.75,), (4.0,), 1))
        (folder / "weights.bin").write_bytes(b"12345")
        say(Artifact("weights.bin", "weights.bin"))
    say(Finished(rank, 2))
"""


def logged(backend: Backend, run: Run) -> list[tuple[int | None, str]]:
    return [(line.rank, line.text) for line in backend.runs.logs.list(run.id)]


def test_what_the_ranks_say_is_kept(backend: Backend, queued: Queued, supervised: Supervised):
    run = supervised(queued(WORKS))
    assert (run.state, run.error) == (RunState.SUCCEEDED, None)
    assert run.summary.accuracy == 0.75
    assert run.summary.loss == pytest.approx(0.4)
    assert run.summary.epochs == 2
    assert {(0, "hello from 0"), (1, "hello from 1")} <= set(logged(backend, run))
    assert [point.value for point in backend.runs.metrics.list(run.id, "loss")] == [
        2.0,
        1.0,
        0.5,
        0.3,
    ]
    (artifact,) = backend.runs.artifacts.list(run.id)
    assert artifact.path.read_bytes() == b"12345"


@pytest.mark.parametrize("name", ["isolated", "beat", "beginnings", "begun_anew"])
def test_a_database_that_is_away_for_a_moment_ends_no_run_that_is_being_launched(
    backend: Backend,
    queued: Queued,
    supervised: Supervised,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
):
    whole, calls = getattr(Attempt, name), []

    def broken(attempt: Attempt, *given: object) -> object:
        calls.append(name)
        if len(calls) < 3:
            raise DatabaseUnreachable("the server closed the connection")
        return whole(attempt, *given)

    monkeypatch.setattr(Attempt, name, broken)
    run = supervised(queued(WORKS))
    assert (run.state, run.error) == (RunState.SUCCEEDED, None)


def test_nothing_of_the_agents_environment_reaches_a_rank(
    backend: Backend, queued: Queued, supervised: Supervised, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("STAGEFLOW_DATABASE_URL", "postgresql://user:hunter2@nowhere/x")
    work = """
    import os
    def work(rank, say, folder):
        say(Started(rank)); print(dict(os.environ)); say(Finished(rank))
    """
    run = supervised(queued(work))
    text = str(logged(backend, run))
    assert run.state is RunState.SUCCEEDED
    assert "WORLD_SIZE" in text
    assert "hunter2" not in text
    assert "STAGEFLOW" not in text


def test_a_reported_failure_keeps_message_advice_and_log(
    backend: Backend, queued: Queued, supervised: Supervised
):
    work = """
    import time
    def work(rank, say, folder):
        say(Started(rank))
        if rank == 0:
            time.sleep(60)
        print("about to fail")
        say(RankError(rank, "ModelRaised", "fake.py, line 9: ValueError: bad", "Mend it.", "Trace"))
        raise SystemExit(1)
    """
    run = supervised(queued(work))
    assert run.state is RunState.FAILED
    assert run.error is not None
    assert (run.error.kind, run.error.advice, run.error.detail) == (
        "ModelRaised",
        "Mend it.",
        "Trace",
    )
    assert (1, "about to fail") in logged(backend, run)


def test_a_traceback_that_nobody_caught_is_in_the_log(
    backend: Backend, queued: Queued, supervised: Supervised
):
    run = supervised(queued("def work(rank, say, folder):\n    raise KeyError('lost key')\n"))
    assert run.error is not None
    assert run.error.kind == "RankEnded"
    assert any("lost key" in text for _, text in logged(backend, run))


def test_a_killed_rank_is_named_with_its_signal(queued: Queued, supervised: Supervised):
    work = """
    import os, time
    def work(rank, say, folder):
        say(Started(rank))
        if rank == 1:
            os.kill(os.getpid(), 9)
        time.sleep(0.2)
        say(RankError(0, "PeerLost", "Connection closed by peer"))
    """
    run = supervised(queued(work))
    assert run.error is not None
    assert run.error.message == "rank 1 was killed by signal 9"
    assert "memory" in run.error.advice


def test_a_rank_that_stands_still_is_hung(queued: Queued, supervised: Supervised):
    work = """
    import os, signal, time
    def work(rank, say, folder):
        say(Started(rank))
        if rank == 1:
            os.kill(os.getpid(), signal.SIGSTOP)
        while True:
            say(Heartbeat(rank))
            time.sleep(0.1)
    """
    run = supervised(queued(work), silence=1.0)
    assert run.error is not None
    assert run.error.kind == "RankHung"
    assert "rank 1" in run.error.message


STUBBORN = """
import signal, subprocess, sys, time
def work(rank, say, folder):
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    child = "import signal, time; signal.signal(15, signal.SIG_IGN); time.sleep(600)"
    subprocess.Popen([sys.executable, "-c", child], start_new_session=True)
    say(Started(rank))
    time.sleep(600)
"""


def test_cancel_ends_ranks_that_ignore_it_and_grandchildren_in_other_sessions(
    backend: Backend,
    queued: Queued,
    supervised: Supervised,
    living: Living,
    eventually: Callable[..., None],
):
    run = queued(STUBBORN)

    def cancel(folder: Path) -> None:
        eventually(lambda: len(living(folder)) == 4)
        eventually(lambda: backend.runs.get(run.id).state is RunState.RUNNING)
        backend.runs.cancel(run.id)
        eventually(lambda: not living(folder))

    assert supervised(run, cancel).state is RunState.CANCELLED


def test_a_run_that_was_taken_away_is_not_written_to_and_its_ranks_end(
    backend: Backend,
    queued: Queued,
    supervised: Supervised,
    living: Living,
    eventually: Callable[..., None],
):
    run = queued(STUBBORN)

    def give_up(folder: Path) -> None:
        eventually(lambda: len(living(folder)) == 4)
        expire_now(backend, run.id)
        eventually(lambda: not living(folder))

    ended = supervised(run, give_up)
    assert ended.error is not None
    assert ended.error.kind == "AgentLost"


def expire_now(backend: Backend, run_id: int) -> None:
    """Again where a heartbeat came between and renewed the lease."""
    from sqlalchemy import text

    while not backend.runs.get(run_id).state.is_final:
        with backend.database.write() as session:
            session.execute(text("UPDATE runs SET lease_until = 0 WHERE id = :id"), {"id": run_id})
        backend.dispatch.expire()


@pytest.mark.parametrize("path", ["/etc/hostname", "../../../stageflow.db", "link"])
def test_a_rank_cannot_have_a_file_kept_that_is_not_its_own(
    path: str, backend: Backend, queued: Queued, supervised: Supervised
):
    work = f"""
    import os
    def work(rank, say, folder):
        say(Started(rank))
        if rank == 0:
            os.symlink("/etc/hostname", folder / "link")
            say(Artifact("stolen", {path!r}))
        say(Finished(rank))
    """
    run = supervised(queued(work))
    assert run.error is not None
    assert run.error.kind == "ReportOutside"
    assert not backend.runs.artifacts.list(run.id)


def test_a_profile_that_cannot_be_read_is_a_clear_error(queued: Queued, supervised: Supervised):
    work = """
    def work(rank, say, folder):
        say(Started(rank))
        (folder / "profile.json").write_text('{"name": 7')
        say(ProfileReady("profile.json"))
        say(Finished(rank))
    """
    run = supervised(queued(work))
    assert run.error is not None
    assert run.error.kind == "InvalidInput"


def test_a_run_can_be_cancelled_before_its_ranks_have_started_their_work(
    backend: Backend, queued: Queued, supervised: Supervised
):
    run = queued("import time\ndef work(rank, say, folder):\n    time.sleep(600)\n")
    ended = supervised(run, lambda folder: backend.runs.cancel(run.id))
    assert ended.state is RunState.CANCELLED


def test_a_flood_of_events_delays_neither_their_order_nor_the_cancel(
    backend: Backend,
    queued: Queued,
    supervised: Supervised,
    living: Living,
    eventually: Callable[..., None],
):
    work = """
    def work(rank, say, folder):
        say(Started(rank))
        step = 0
        while True:
            step += 1
            say(Metrics("loss", (step,), (1.0,), (float(step),), 0))
    """
    run = queued(work)

    def cancel(folder: Path) -> None:
        eventually(lambda: len(backend.runs.metrics.list(run.id, "loss")) > 100)
        backend.runs.cancel(run.id)
        eventually(lambda: not living(folder))

    assert supervised(run, cancel).state is RunState.CANCELLED


def test_leftovers_of_another_database_make_way(
    backend: Backend, queued: Queued, supervised: Supervised
):
    run = queued(WORKS)
    folder = backend.settings.run_folder(run.id, 1)
    folder.mkdir(parents=True)
    (folder / "weights.bin").write_text("of another run")
    assert supervised(run).state is RunState.SUCCEEDED


def test_a_folder_that_another_agent_works_in_is_not_touched(
    backend: Backend, queued: Queued, supervised: Supervised
):
    run = queued(WORKS)
    folder = backend.settings.run_folder(run.id, 1)
    folder.mkdir(parents=True)
    remember(folder, Pid.of(os.getppid()), ())
    ended = supervised(run)
    assert ended.error is not None
    assert ended.error.kind == "FolderInUse"
    assert (folder / "ranks.json").exists()

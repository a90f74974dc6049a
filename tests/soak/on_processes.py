"""Faults of agents, ranks and the dashboard."""

import random
import signal
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import psutil
from sqlalchemy import text

from backend.runs.run import Run
from backend.runs.states import RunState
from backend.storage.errors import DatabaseUnreachable
from backend.storage.soundness import violations
from tests.ports import free_port
from tests.soak.fault import Curve, Figures, Make, equal
from tests.soak.site import Site


def agent_killed(there: Site, undisturbed: Curve) -> Figures:
    """The other agent takes the run over when its lease is over."""
    run = there.on_its_way(there.spec())
    node, ranks = there.agent_of(run.id), there.ranks(run.id)
    moment = time.time()
    there.signal(node, signal.SIGKILL)
    gone = there.wait(lambda: not any(rank.is_running() for rank in ranks))
    equal(there, run.id, undisturbed)
    there.agents[node].wait()
    there.start(node)
    return {"no rank alive": gone, "first new step": there.first_step_after(run.id, moment)}


def rank_killed(ranks: int) -> Make:
    def make(there: Site, undisturbed: Curve) -> Figures:
        run = there.on_its_way(there.spec(ranks))
        random.choice(there.ranks(run.id)).kill()
        moment = time.time()
        equal(there, run.id, undisturbed)
        return {"first new step": there.first_step_after(run.id, moment)}

    return make


def agent_paused(there: Site, undisturbed: Curve) -> Figures:
    """Past its lease, then woken: the other one has the run, the woken one changes nothing.
    Where it is paused in the middle of a write, PostgreSQL puts it out of that after a lease;
    SQLite cannot, and it goes on with its run."""
    run = there.on_its_way(there.spec())
    time.sleep(random.random())  # the checkpoint that was waited for may still be written
    node, moment = there.agent_of(run.id), time.time()
    there.signal(node, signal.SIGSTOP)
    there.wait(lambda: there.backend.runs.get(run.id).attempt == 2 or _is_locked(there))
    there.signal(node, signal.SIGCONT)
    equal(there, run.id, undisturbed)
    outcomes = [attempt.outcome for attempt in there.backend.runs.attempts(run.id)]
    if outcomes == ["succeeded"]:  # it stood still in a write, and nobody else could
        return {}
    assert (set(outcomes[:-1]), outcomes[-1]) == ({"restarted"}, "succeeded")
    there.wait(lambda: "no longer holds" in there.log(node))
    return {"first new step": there.first_step_after(run.id, moment)}


def _is_locked(there: Site) -> bool:
    """Does whoever was paused hold SQLite's one lock on writing? Found after 10 s of trying."""
    try:
        with there.backend.database.write() as session:
            session.execute(text("SELECT 1"))  # only now does the transaction begin
        return False
    except DatabaseUnreachable:
        return True


def checkpoint_killed(there: Site, undisturbed: Curve) -> Figures:
    """A checkpoint after every update, a rank killed at any moment: the newest is whole."""
    run = there.on_its_way(there.spec(updates=1))
    time.sleep(random.random())
    for rank in there.ranks(run.id)[:1]:
        rank.kill()
    moment = time.time()
    there.wait(lambda: there.backend.runs.get(run.id).attempt == 2 or _is_final(there, run))
    assert violations(there.backend.database, there.settings) == []
    equal(there, run.id, undisturbed)
    with suppress(ValueError):  # it may have been through already
        return {"first new step": there.first_step_after(run.id, moment)}
    return {}


def cancelled(there: Site, undisturbed: Curve) -> Figures:
    """Well on its way: gone, with a checkpoint from which it goes on bit for bit."""
    run = there.on_its_way(there.spec())
    before = there.backend.runs.checkpoints.list(run.id)[0].id
    gone = _cancel(there, run.id)
    assert there.backend.runs.checkpoints.list(run.id)[0].id > before
    equal(there, there.backend.runs.resume(run.id).id, undisturbed)
    return {"no process left": gone}


def cancelled_anywhere(there: Site, undisturbed: Curve) -> Figures:
    """In each state that a run can be in: queued, claimed, ranks starting, training, and while
    every update makes a checkpoint."""
    runs, found = there.backend.runs, {}
    there.agents["a"].send_signal(signal.SIGSTOP)
    found["queued"] = _cancel(there, runs.submit(there.spec()).id)
    there.agents["a"].send_signal(signal.SIGCONT)
    for name in ("starting", "with ranks", "running", "saving"):
        run = runs.submit(there.spec(updates=1 if name == "saving" else 10))
        ready = {
            "starting": lambda run=run: runs.get(run.id).state is RunState.STARTING,
            "with ranks": lambda run=run: there.ranks(run.id),
            "running": lambda run=run: runs.get(run.id).state is RunState.RUNNING,
            "saving": lambda run=run: runs.checkpoints.list(run.id),
        }
        there.wait(ready[name])
        found[name] = _cancel(there, run.id)
    return found


def _cancel(there: Site, run_id: int) -> float:
    started = time.monotonic()
    there.backend.runs.cancel(run_id)
    there.wait(lambda: there.backend.runs.get(run_id).state.is_final)
    there.wait(lambda: not there.living(run_id))
    seconds = time.monotonic() - started
    assert there.backend.runs.get(run_id).state is RunState.CANCELLED
    return seconds


def _is_final(there: Site, run: Run) -> bool:
    return there.backend.runs.get(run.id).state.is_final


def dashboard_killed(there: Site, undisturbed: Curve) -> Figures:
    """Of a `stageflow up`: the run goes on, the page is there again by itself."""
    with _up(there) as (up, port):
        there.wait(lambda: has_page(port))
        (web,) = up.children()
        run = there.on_its_way(there.spec())
        web.kill()
        started = time.monotonic()
        there.wait(lambda: not web.is_running() and has_page(port))
        back = time.monotonic() - started
        equal(there, run.id, undisturbed)
    assert len(there.backend.runs.attempts(run.id)) == 1
    return {"page back": back}


@contextmanager
def _up(there: Site) -> Iterator[tuple[psutil.Process, int]]:
    """A dashboard alone, for the site's database and Redis, and its port."""
    port = free_port()
    place = {"database_url": there.settings.sql_url, "redis_url": there.settings.broker_url}
    settings = there.settings.model_copy(update={"node": "web", "port": port, **place})
    up = there.process("app.cli", settings, "up", "--no-agent")
    try:
        yield psutil.Process(up.pid), port
    finally:
        up.terminate()
        assert up.wait() == 0


def has_page(port: int) -> bool:
    """Is it well, and does it give out its page?"""
    with suppress(OSError):
        texts = []
        for path in ("healthz", ""):
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/{path}", timeout=5) as answer:
                texts.append(answer.read().decode())
        return "ok" in texts[0] and "<html" in texts[1]
    return False


def same_name(there: Site, undisturbed: Curve) -> Figures:
    """A second agent of the name, from the same home and from another one, says so and ends;
    the first one's run goes on."""
    run = there.on_its_way(there.spec())
    url = there.settings.sql_url
    other = there.settings.home / "of somebody else"
    for home, words in ((there.settings.home, "runs in"), (other, "belongs to the agent of")):
        settings = there.settings.model_copy(
            update={"home": home, "database_url": url, "redis_url": there.settings.broker_url}
        )
        before = len(there.log("a"))
        second = there.process("workers.agent", settings)
        assert second.wait(60) == 1
        told = there.log("a")[before:]
        assert words in told, told
        assert "STAGEFLOW_NODE" in told
    equal(there, run.id, undisturbed)
    assert len(there.backend.runs.attempts(run.id)) == 1
    return {}

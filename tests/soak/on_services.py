"""Faults of Redis, of the database, of messages and clocks, and disks without room."""

import random
import shutil
import subprocess
import time
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

from backend.queue.client import redis_client
from backend.runs.states import RunState
from tests.soak.clock import off_by
from tests.soak.fault import Curve, Figures, Make, each_once, equal, told_once
from tests.soak.site import Site, site

AWAY = 10.0


def redis_gone(there: Site, undisturbed: Curve) -> Figures:
    """Killed with messages waiting, away for ten seconds while runs are asked for, then back."""
    runs = [there.backend.runs.submit(there.spec(1, epochs=1))]
    process = there.redis.pid()
    assert process is not None
    subprocess.run(["kill", "-9", str(process)], check=True)
    slowest = 0.0
    for _ in range(2):
        started = time.monotonic()
        runs.append(there.backend.runs.submit(there.spec(1, epochs=1)))
        slowest = max(slowest, time.monotonic() - started)
        time.sleep(AWAY / 2)
    there.redis.start()
    each_once(there, runs)
    return {"submit": slowest}


def redis_wiped(there: Site, undisturbed: Curve) -> Figures:
    """All messages and everything that Celery keeps there are gone."""
    runs = [there.backend.runs.submit(there.spec(1, epochs=1)) for _ in range(3)]
    with redis_client(there.settings) as client:
        client.flushall()
    each_once(there, runs)
    return {}


def messages_doubled(there: Site, undisturbed: Curve) -> Figures:
    """Each run's message five times, in any order, at both agents."""
    runs = [there.backend.runs.submit(there.spec(1, epochs=1)) for _ in range(3)]
    messages = [(run.id, node) for run in runs for node in there.agents for _ in range(5)]
    random.shuffle(messages)
    for run_id, node in messages:
        there.backend.queue.publish(run_id, node)
    each_once(there, runs)
    return {}


def restarted(there: Site, undisturbed: Curve) -> Figures:
    """The database is away for a moment: the attempt does not notice, or goes on after it."""
    run = there.on_its_way(there.spec())
    there.database.stop()
    there.database.start()
    moment = time.time()
    equal(there, run.id, undisturbed)
    told_once(there, run.id)
    with suppress(ValueError):
        return {"first new step": there.first_step_after(run.id, moment)}
    return {}


def away(seconds: float) -> Make:
    def make(there: Site, undisturbed: Curve) -> Figures:
        """For longer than a lease: the ranks end, what they told is written afterwards, and
        another attempt goes on."""
        run = there.on_its_way(there.spec(epochs=12))
        ranks = there.ranks(run.id)
        there.database.stop()
        gone = there.wait(lambda: not any(rank.is_running() for rank in ranks))
        time.sleep(max(0.0, seconds - gone))
        there.database.start()
        moment = time.time()
        ended = there.final(run.id)
        assert ended.state is RunState.SUCCEEDED, ended.error
        attempts = there.backend.runs.attempts(run.id)
        assert [a.error and a.error.kind for a in attempts] == ["DatabaseUnreachable", None]
        curve = there.curve(run.id)
        assert [step for step, _ in curve] == list(range(len(curve)))
        told_once(there, run.id)
        return {"ranks end": gone, "first new step": there.first_step_after(run.id, moment)}

    return make


def caught_up(seconds: float) -> Make:
    def make(there: Site, undisturbed: Curve) -> Figures:
        """For less than a lease: the same attempt goes on, and what it told meanwhile is
        written when the database is back."""
        run = there.on_its_way(there.spec())
        there.database.stop()
        started = time.time()
        time.sleep(seconds)
        there.database.start()
        back = time.time()
        equal(there, run.id, undisturbed)
        assert len(there.backend.runs.attempts(run.id)) == 1
        meanwhile = [p for p in there.backend.runs.metrics.list(run.id, "loss") if p.time > started]
        assert any(point.time < back for point in meanwhile), "nothing was told meanwhile"
        told_once(there, run.id)
        return {}

    return make


def clocks_apart(there: Site, undisturbed: Curve) -> Figures:
    """The agent's clock is an hour fast, the next one's an hour slow; the first one dies. On
    SQLite, where all processes share one machine's clock, that clock is set instead."""
    is_shared = not there.settings.database_url
    clock = there.settings.home / "clock"
    nodes = ("fast", "slow")
    there.end("a")
    for node, hours in zip(nodes, (1, -1), strict=True):
        file = clock if is_shared else clock.with_name(f"clock-{node}")
        file.write_text("0" if is_shared else str(3600 * hours))
        there.start(node, **off_by(there.settings.home, file))
    try:
        run = there.on_its_way(there.spec())
        if is_shared:
            for hours in (1, 0):  # set forwards, and back again
                clock.write_text(str(3600 * hours))
                time.sleep(3.0)
        else:
            off = [node.ahead for node in there.backend.nodes.list() if node.is_off]
            assert {round(ahead / 3600) for ahead in off} == {-1, 1}
            there.agents[there.agent_of(run.id)].kill()
        equal(there, run.id, undisturbed)
        ended = there.backend.runs.get(run.id)
        assert ended.started_at is not None
        assert ended.finished_at is not None
        assert ended.finished_at >= ended.started_at
    finally:
        for node in nodes:
            there.end(node)
        there.start("a")
    return {}


def disk_full(there: Site, undisturbed: Curve) -> Figures:
    """A site of its own on a small disk, which is filled while a run is on its way: the run says
    so; when there is room again, everything is as it was and runs go well."""
    kind = "postgresql" if there.settings.database_url else "sqlite"
    size = "400m" if kind == "postgresql" else "64m"
    with TemporaryDirectory(prefix="stageflow-disk-") as folder:
        small = Path(folder)
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "small", small], check=True)
        small.chmod(0o755)  # PostgreSQL runs as a user of its own
        try:
            with site(kind, place=small) as tight:
                _filled(tight, small)
        finally:
            subprocess.run(["umount", "-l", small], check=True)
    return {}


def _filled(tight: Site, disk: Path) -> None:
    tight.start("a")
    early = tight.final(tight.backend.runs.submit(tight.spec(1, epochs=1)).id)
    curve = tight.curve(early.id)
    run = tight.on_its_way(tight.spec())
    filler = disk / "filler"
    with suppress(OSError), filler.open("wb", buffering=0) as file:
        while True:
            file.write(bytes(max(512, min(1 << 20, shutil.disk_usage(disk).free))))
    tight.wait(lambda: not tight.ranks(run.id))
    filler.unlink()
    tight.database.start()  # where it ended by itself
    ended = tight.final(run.id)
    assert ended.error is not None
    assert ended.error.kind == "DiskFull", ended.error
    assert "STAGEFLOW_HOME" in ended.error.advice
    assert tight.curve(early.id) == curve
    late = tight.final(tight.backend.runs.submit(tight.spec(1, epochs=1)).id)
    assert late.state is RunState.SUCCEEDED, late.error

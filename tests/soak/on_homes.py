"""Faults of a whole home: its clocks and claims, two who keep it up, a move, a file system that
stalls."""

import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from backend.runs.states import RunState
from backend.storage.backup.layout import Occupied
from backend.storage.backup.moving import move
from backend.storage.soundness import violations
from tests.ports import free_port
from tests.soak.fault import Curve, Figures, Make, each_once, equal, told_once, undisturbed
from tests.soak.on_processes import has_page
from tests.soak.site import Site, site

HOUR = 3600


def redis_clock_set(there: Site, undisturbed: Curve) -> Figures:
    """An hour forward, an hour back, and right again, with runs asked for at each."""
    runs = []
    try:
        for seconds in (HOUR, -HOUR, 0):
            there.redis.set_clock(seconds)
            time.sleep(1.5)  # the shim looks once a second
            runs.append(there.backend.runs.submit(there.spec(1, epochs=1)))
    finally:
        there.redis.set_clock(0)
    each_once(there, runs)
    return {}


def restarted_in_claims(there: Site, undisturbed: Curve) -> Figures:
    """The database, twice, while two agents claim whatever they can."""
    runs = [there.backend.runs.submit(there.spec(1, epochs=1)) for _ in range(6)]
    for _ in range(2):
        there.database.stop()
        there.database.start()
        time.sleep(1.0)
    each_once(there, runs)
    return {}


def moved(there: Site, undisturbed: Curve) -> Figures:
    """While a run reports: refused with the agent's name, and neither disturbs the other."""
    run = there.on_its_way(there.spec())
    target = there.settings.home / f"moved-{run.id}.db"
    with pytest.raises(Occupied, match="the agent a works with it"):
        move(there.settings, f"sqlite:///{target}")
    equal(there, run.id, undisturbed)
    told_once(there, run.id)
    return {}


def up_twice(there: Site, undisturbed: Curve) -> Figures:
    """`stageflow up` on a home that has one, on another port: both show pages, the run of the first
    one's agent goes on; when the first ends, the second keeps the home up alone."""
    there.end("a")
    there.redis.stop()
    with _up(there, "first") as (first, port), _up(there, "second") as (second, other):
        there.wait(lambda: has_page(port) and has_page(other))
        run = there.on_its_way(there.spec(1))
        first.terminate()
        assert first.wait(60) == 0
        started = time.monotonic()
        equal(there, run.id, undisturbed)
        equal(there, there.backend.runs.submit(there.spec(1)).id, undisturbed)
        assert has_page(other)
        assert second.poll() is None
    there.redis.start()
    there.start("a")
    return {"goes on": time.monotonic() - started}


@contextmanager
def _up(there: Site, log: str) -> Iterator[tuple["subprocess.Popen[bytes]", int]]:
    port = free_port()
    up = there.process("app.cli", there.settings.model_copy(update={"port": port}), "up")
    there.wait(lambda: has_page(port))
    try:
        yield up, port
    finally:
        up.terminate()
        up.wait()


def stalled(seconds: float) -> Make:
    def make(there: Site, curve: Curve) -> Figures:
        """A site of its own whose file system takes no write for so long, as a network's that is
        away: who writes meanwhile hangs, unkillably. Afterwards the run has its losses."""
        kind = "postgresql" if there.settings.database_url else "sqlite"
        with _file_system() as place, site(kind, place=place) as slow:
            slow.start("a")
            expected = undisturbed(slow, slow.spec())
            run = slow.on_its_way(slow.spec())
            with _frozen(place):
                time.sleep(seconds)
            back = time.monotonic()
            ended = slow.final(run.id)
            assert ended.state is RunState.SUCCEEDED, ended.error
            assert slow.curve(run.id) == expected == curve
            told_once(slow, run.id)
            assert not violations(slow.backend.database, slow.settings)
            return {"ended after": time.monotonic() - back, "attempts": float(ended.attempt)}

    return make


@contextmanager
def _file_system() -> Iterator[Path]:
    """One of its own, in a file."""
    with TemporaryDirectory(prefix="stageflow-stall-") as folder:
        image, place = Path(folder) / "image", Path(folder) / "there"
        place.mkdir()
        with image.open("wb") as file:
            file.truncate(1 << 30)
        subprocess.run(["mkfs.ext4", "-q", str(image)], check=True)
        subprocess.run(["mount", "-o", "loop", str(image), str(place)], check=True)
        place.chmod(0o755)  # PostgreSQL runs as a user of its own
        try:
            yield place
        finally:
            subprocess.run(["umount", "-l", str(place)], check=True)


@contextmanager
def _frozen(place: Path) -> Iterator[None]:
    subprocess.run(["fsfreeze", "--freeze", str(place)], check=True)
    try:
        yield
    finally:
        with suppress(subprocess.CalledProcessError):
            subprocess.run(["fsfreeze", "--unfreeze", str(place)], check=True)

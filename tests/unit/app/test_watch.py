"""What is kept running: started again at once, then more slowly, then given up."""

import subprocess
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import cast

import pytest

from app.server import watch
from backend.queue.embedded import EmbeddedRedis, RedisNotStarted

LOG = Path("/somewhere/agent.log")


def command(
    line: str, ended: list[int] | None = None
) -> Callable[[], AbstractContextManager[watch.Child]]:
    """Starts a shell with this line; the numbers of those that have ended go into `ended`."""

    @contextmanager
    def start() -> Iterator[watch.Child]:
        child = subprocess.Popen(["sh", "-c", line])
        try:
            yield child
        finally:
            child.kill()
            child.wait()
            (ended if ended is not None else []).append(child.pid)

    return start


def test_what_ends_is_started_again(capsys: pytest.CaptureFixture[str]) -> None:
    processes = watch.kept("agent", command("sleep 600"), LOG)
    first = next(processes)
    assert next(processes) is first
    first.kill()
    first.wait()
    second = next(processes)
    assert second.poll() is None
    assert second.pid != first.pid
    said = " ".join(capsys.readouterr().err.split())
    assert "the agent ended by itself (exit code -9) and is started again: see " in said
    assert LOG.name in said
    processes.close()


def test_closed_it_ends() -> None:
    ended: list[int] = []
    processes = watch.kept("agent", command("sleep 600", ended), LOG)
    child = next(processes)
    processes.close()
    assert ended == [child.pid]
    assert child.returncode is not None


def test_what_keeps_ending_is_given_up(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(watch, "PAUSES", (0.0, 0.01, 0.02))
    ended: list[int] = []
    with pytest.raises(watch.KeepsEnding, match=r"exit code 3.* 4 times in a row") as fault:
        watch.watch(watch.kept("agent", command("exit 3", ended), LOG))
    assert str(LOG) in fault.value.advice
    assert len(ended) == len(set(ended)) == 4
    assert capsys.readouterr().err.count("started again") == 3


def test_what_lived_for_long_is_started_again_without_end(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(watch, "YOUNG", 0.0)
    ended: list[int] = []
    processes = watch.kept("agent", command("exit 3", ended), LOG)
    while len(ended) <= len(watch.PAUSES) + 1:
        next(processes)
    assert "started again in " not in capsys.readouterr().err
    processes.close()


def test_pauses_grow_and_stay_bounded() -> None:
    assert watch.PAUSES[0] == 0
    assert list(watch.PAUSES) == sorted(set(watch.PAUSES))
    assert watch.PAUSES[-1] <= watch.YOUNG


def test_one_that_waits_does_not_hold_up_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch, "PAUSES", (0.0, 3600.0))
    ended: list[int] = []
    ill = watch.kept("agent", command("exit 3", ended), LOG)
    while len(ended) < 2:
        next(ill)
    monkeypatch.setattr(watch, "PAUSES", (0.0,))
    with pytest.raises(watch.KeepsEnding, match="dashboard"):
        watch.watch(ill, watch.kept("dashboard", command("exit 1"), LOG))
    assert len(ended) == 2


class Redis:
    """Starts but for the first times, and ends when it is told to."""

    log = Path("/somewhere/redis.log")

    def __init__(self, failures: int) -> None:
        self._failures, self.starts, self.lives = failures, 0, True

    def pid(self) -> int | None:
        return 1 if self.lives else None

    def is_up(self) -> bool:
        return self.lives

    def start(self) -> bool:
        self.starts += 1
        if self.starts <= self._failures:
            raise RedisNotStarted("the disk is full", "Free some.")
        self.lives = True
        return True


@pytest.mark.parametrize("failures", [0, len(watch.PAUSES) + 3])
def test_redis_is_started_again_as_often_as_it_takes(
    failures: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(watch, "PAUSES", tuple(0.0 for _ in watch.PAUSES))
    server = Redis(failures)
    looks = watch.kept_redis(cast("EmbeddedRedis", server))
    next(looks)
    assert not server.starts
    server.lives = False
    next(looks)
    assert server.lives
    assert server.starts == failures + 1
    said = capsys.readouterr().err
    assert said.count("Redis ended by itself") == failures + 1
    assert said.count("the disk is full") == failures


def test_redis_that_rests_holds_nothing_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch, "PAUSES", (3600.0,))
    server = Redis(0)
    looks = watch.kept_redis(cast("EmbeddedRedis", server))
    server.lives = False
    for _ in range(5):
        next(looks)
    assert not server.starts


def test_who_follows_begins_when_the_other_has_been_gone_for_long(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Not while whoever keeps the other may start it again."""
    gone, own = watch.GONE, cast("watch.Child", object())
    steps = (
        (0.0, True, None),
        (gone, True, None),
        (gone + 1, False, None),
        (2 * gone - 1, True, None),
        (3 * gone - 2, False, None),
        (3 * gone, False, own),
    )
    world = {"now": 0.0, "there": True}
    monkeypatch.setattr("app.server.watch.time.monotonic", lambda: world["now"])
    looks = watch.follower(lambda: bool(world["there"]), lambda: (own for _ in range(1)))
    for now, there, expected in steps:
        world.update(now=now, there=there)
        assert next(looks) is expected

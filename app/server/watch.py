"""Start again what ends by itself."""

import subprocess
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

from app.terminal import out, warn
from backend.errors import StageflowError
from backend.queue.embedded import EmbeddedRedis, RedisNotStarted

YOUNG = 30.0
"""Seconds after its start before which the end of a process is an early one."""
PAUSES = (0.0, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0)
"""Seconds until the next start, by the early ends in a row so far; after as many it is given up."""
GONE = PAUSES[-1] + 5.0
"""Seconds without a process after which nobody else starts it again."""
LOOK = 0.2
"""Seconds between two looks."""

Child = subprocess.Popen[bytes]
Kept = Iterator[object]
"""Whoever takes the next item of it has looked after a process."""


class KeepsEnding(StageflowError):
    """A process ended soon after each of its starts."""


def kept(
    name: str, start: Callable[[], AbstractContextManager[Child]], log: Path
) -> Generator[Child, None, None]:
    """The process, once per look: another one where it had ended. Closed with it, the process
    ends. Raises `KeepsEnding`."""
    early = 0
    while True:
        born = time.monotonic()
        with start() as child:
            while child.poll() is None:
                yield child
        early = early + 1 if time.monotonic() - born < YOUNG else 1
        how = f"the {name} ended by itself (exit code {child.returncode})"
        if early > len(PAUSES):
            raise KeepsEnding(
                f"{how}, {early} times in a row within {YOUNG:.0f} s of its start",
                f"The last lines of {log} say why.",
            )
        due = _again(how, early, log)
        while time.monotonic() < due:
            yield child


def follower(
    is_there: Callable[[], bool], own: Callable[[], Generator[Child, None, None]]
) -> Generator[Child | None, None, None]:
    """Nothing while somebody else's process `is_there`, or may be started again by whoever keeps
    it; then one's `own`."""
    seen = time.monotonic()
    while time.monotonic() - seen <= GONE:
        if is_there():
            seen = time.monotonic()
        yield None
    yield from own()


def kept_redis(server: EmbeddedRedis) -> Iterator[None]:
    """Never given up: without Redis every run is still taken, a little later."""
    early = 0
    while True:
        born = time.monotonic()
        while server.pid() or server.is_up():
            yield None
        early = early + 1 if time.monotonic() - born < YOUNG else 1
        due = _again("Redis ended by itself", early, server.log)
        while time.monotonic() < due:
            yield None
        try:
            server.start()
        except RedisNotStarted as fault:
            warn(str(fault))


def _again(how: str, early: int, log: Path) -> float:
    """Say what ended, and when it is started again: on the clock that only goes forward."""
    pause = PAUSES[min(early, len(PAUSES)) - 1]
    warn(f"{how} and is started again{f' in {pause:.0f} s' if pause else ''}: see {log}")
    return time.monotonic() + pause


def watch(*processes: Kept) -> None:
    """Keep them running until Ctrl-C or SIGTERM. Raises `KeepsEnding`."""
    try:
        while True:
            for process in processes:
                next(process, None)
            time.sleep(LOOK)
    except KeyboardInterrupt:
        out.print("Stopping.")

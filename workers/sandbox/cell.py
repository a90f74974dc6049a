"""The ranks of one run together: started together, limited, ended together."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import IO

import psutil

from backend.errors import StageflowError
from backend.runs.events import EVENT_PIPE
from backend.sandbox_level import SandboxLevel
from workers.sandbox import bubblewrap, call_filter, launcher, usage
from workers.sandbox.control_group import ControlGroup
from workers.sandbox.limits import Limits
from workers.sandbox.room import Room

LOG = "sandbox.log"
FORKER = "workers.sandbox.forking"
GRACE = 2.0
"""Seconds between SIGTERM and SIGKILL."""
MAX_TOLD = 500
FIRST_TO_GO = f"echo {usage.EASY_TO_KILL} >/proc/self/oom_score_adj;"
"""Said before there is a rank. Where the agent has CAP_SYS_RESOURCE no rank takes it back;
elsewhere the guard says it again."""
PASSED_ON = ("PATH", "LD_LIBRARY_PATH")
"""All that bubblewrap gets of the agent's variables: inside it can be read in /proc/1."""


class SandboxFailed(StageflowError):
    """The sandbox could not be set up: nothing of the run was started."""

    advice = (
        "`stageflow doctor` shows the sandbox of each node. bubblewrap needs user namespaces or "
        "root."
    )


@dataclass(frozen=True, slots=True)
class LaunchRequest:
    """What to start: one command, in one environment per rank. `gpus`: the ranks use them.
    `outside`: they have the machine's network, because they meet ranks of other machines. `cores`
    to which they are bound; () = any."""

    command: tuple[str, ...]
    environments: tuple[Mapping[str, str], ...]
    limits: Limits
    gpus: bool = False
    outside: bool = False
    cores: tuple[int, ...] = ()

    @property
    def forker(self) -> tuple[str, ...]:
        """What imports the ranks' module once and forks them all; () where each imports it: one
        alone, with GPUs, for which that was never tried, and where orphans go to nobody."""
        python, *rest = self.command
        is_one = len(self.environments) < 2 or self.gpus or not sys.platform.startswith("linux")
        if is_one or rest[:2] != ["-u", "-m"]:
            return ()
        return (python, "-u", "-m", FORKER, *rest[2:])


class Cell:
    """A launcher with its ranks, inside bubblewrap or not, as `level` says.

    The thread that makes it must live until `end`: bubblewrap ends with that thread.
    Raises `OSError` where the launcher cannot be started.
    """

    def __init__(self, room: Room, order: LaunchRequest, level: SandboxLevel) -> None:
        self.outputs: list[IO[str]] = []
        """What the ranks print: standard output and error of rank 0, of rank 1 ... The
        reader closes them, as `events`."""
        self.events: list[IO[str]] = []
        """What the ranks tell, each on a pipe of its own."""
        self._room = room
        self._codes: dict[int, int] = {}
        self._num_ranks = len(order.environments)
        self._is_up = False
        self._unread = b""
        self._group = ControlGroup.of(order.limits)
        is_wrapped = level is SandboxLevel.BUBBLEWRAP
        user = bubblewrap.rank_user() if is_wrapped else None
        room.furnish(user)
        self._start(order, user, is_wrapped)

    def _start(self, order: LaunchRequest, user: int | None, is_wrapped: bool) -> None:
        calls = call_filter.program(order.gpus)
        readable, told = os.pipe()
        self._status = os.fdopen(readable, "rb", buffering=0)
        os.set_blocking(readable, False)
        ends = [_pipe(self.outputs) for _ in range(2 * self._num_ranks)]
        told_by = [_pipe(self.events) for _ in range(self._num_ranks)]
        try:
            command = [sys.executable, "-I", "-S", launcher.__file__]
            if is_wrapped:
                bwrap = bubblewrap.program() or "bwrap"
                command = bubblewrap.command(bwrap, self._room, command, order.gpus, order.outside)
            self._process = self._popen(command, [told, *ends, *told_by])
        finally:
            for end in (told, *ends, *told_by):
                os.close(end)
        limits = order.limits.of_process(order.gpus, others=0 if is_wrapped else _num_own())
        self._send(
            self._message(order, user, told, ends, told_by)
            | {"limits": limits, "filter": calls and calls.hex()}
        )

    def _message(
        self,
        order: LaunchRequest,
        user: int | None,
        status: int,
        ends: Sequence[int],
        events: Sequence[int],
    ) -> dict[str, object]:
        of_ranks = zip(order.environments, ends[::2], ends[1::2], events, strict=True)
        return {
            "command": order.command,
            "forker": order.forker,
            "folder": str(self._room.work),
            "ranks": [
                {
                    "environment": {**environment, EVENT_PIPE: str(told)},
                    "out": out,
                    "err": err,
                    "events": told,
                }
                for environment, out, err, told in of_ranks
            ],
            "status": status,
            "user": user,
            "cores": order.cores,
            "grace": GRACE,
        }

    def _send(self, message: dict[str, object]) -> None:
        """The order, by the pipe that is the leash afterwards."""
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):  # it has ended: `exits` says why
            self._process.stdin.write(json.dumps(message).encode() + b"\n")
            self._process.stdin.flush()

    def _popen(self, command: Sequence[str], ends: Sequence[int]) -> "subprocess.Popen[bytes]":
        with (self._room.folder / LOG).open("wb") as log, _without_warnings():
            said = FIRST_TO_GO + (self._group.entering if self._group else "")
            return subprocess.Popen(
                ["/bin/sh", "-c", f'{said} exec "$@"', "sh", *command],
                env={name: os.environ[name] for name in PASSED_ON if name in os.environ},
                cwd=self._room.work,
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                pass_fds=ends,
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        """The outermost process; every other one descends from it."""
        return self._process.pid

    @property
    def is_out_of_memory(self) -> bool:
        """Has the kernel ended one for going beyond the limit of all together?"""
        return self._group is not None and self._group.is_out_of_memory

    def exits(self) -> dict[int, int]:
        """Exit codes by rank of those that have ended (-9: killed by signal 9, or their launcher
        before it had started them), after `end` too; raises `SandboxFailed` where they could not be
        started."""
        code = self._process.poll()
        self._hear()
        if code is None:
            return dict(self._codes)
        ended = 128 - code if code > 128 else code
        if not self._is_up and ended != -signal.SIGKILL:
            raise SandboxFailed(f"the ranks could not be started: {self._told()}")
        return {rank: self._codes.get(rank, ended) for rank in range(self._num_ranks)}

    def _hear(self) -> None:
        """What the launcher has told since the last time."""
        while not self._status.closed and (part := self._status.read(4096)):
            self._unread += part
        *lines, self._unread = self._unread.split(b"\n")
        for line in lines:
            self._note(line)

    def _note(self, line: bytes) -> None:
        if line == launcher.UP.encode():
            self._is_up = True
            return
        with suppress(ValueError):  # ranks of the agent's own user can write into the pipe
            rank, code = map(int, line.split())
            self._codes[rank] = code

    def _told(self) -> str:
        lines = (self._room.folder / LOG).read_text(errors="replace").strip().splitlines()
        return lines[-1][:MAX_TOLD] if lines else "it printed nothing"

    def show_stacks(self) -> None:
        """Let every rank write the stacks of its threads to its standard error."""
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):
            self._process.stdin.write(b"\n")
            self._process.stdin.flush()

    def end(self, grace: float = GRACE) -> None:
        """SIGTERM to the ranks, `GRACE` seconds, then an end to every process. With a
        `grace` of 0 at once. May be called twice."""
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):
            self._process.stdin.close()
        if grace:
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(grace + launcher.PATIENCE)
        self._process.kill()
        self._process.wait()
        self._hear()
        self._status.close()
        if self._group is not None:
            self._group.close()


def _pipe(readers: list[IO[str]]) -> int:
    """A new pipe, its end to read from beside `readers`: the end to write to."""
    readable, writable = os.pipe()
    readers.append(os.fdopen(readable, encoding="utf-8", errors="replace"))
    return writable


@contextmanager
def _without_warnings() -> Iterator[None]:
    """SIGUSR1 does not reach what is started meanwhile. Schedulers warn every process of a job by
    it, and the agent alone acts on that. A mask of signals survives exec: it holds for bubblewrap,
    the launcher and the ranks, from their first moment."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _num_own() -> int:
    """Processes and threads that this user has now."""
    count = 0
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            if process.uids().real == os.getuid():
                count += process.num_threads()
    return count

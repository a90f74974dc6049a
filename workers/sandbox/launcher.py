"""Inside the sandbox: sets the limits, starts the ranks, tells how they end, ends them.

Run by its path as `python -I -S launcher.py`, so it knows the standard library alone. The
first line of its standard input is the order (see `cell`), the rest a leash: what comes on it
asks the ranks for their stacks, and when it closes, the run is over or the agent is dead.
"""

import ctypes
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import Any

_PR_SET_CHILD_SUBREAPER = 36
_PR_SET_SECCOMP, _MODE_FILTER, _PR_SET_NO_NEW_PRIVS = 22, 2, 38
_INSTRUCTION = 8
"""Bytes of a struct sock_filter."""
UP = "up"
"""The line that says that every rank was started."""
PATIENCE = 2.0
"""Seconds that killed processes get to vanish."""


def main() -> None:
    """Never returns: the leash ends the process."""
    order: dict[str, Any] = json.loads(sys.stdin.buffer.readline())
    signal.signal(signal.SIGTERM, _stay)
    signal.signal(signal.SIGINT, _stay)
    signal.signal(signal.SIGUSR2, signal.SIG_IGN)  # so in ranks, until they can tell their stacks
    _adopt_orphans()
    _limit(order["limits"])
    if order["filter"]:
        _load_filter(bytes.fromhex(order["filter"]))
    if order["cores"]:
        os.sched_setaffinity(0, order["cores"])
    ranks: dict[int, int] = {}
    threading.Thread(target=_end_with_leash, args=(order["grace"], ranks), daemon=True).start()
    if order["forker"]:
        pids = _forked(order)
    else:
        started = [_start(order, rank) for rank in order["ranks"]]
        pids = [process.pid for process in started]  # held: `subprocess` buries what nobody holds
        _say(order["status"], UP)
    ranks.update((pid, rank) for rank, pid in enumerate(pids))
    _watch(ranks, order["status"])
    while True:
        signal.pause()


def _stay(number: int, frame: FrameType | None) -> None:
    """The ranks are asked to end by these signals; this process waits for them."""


def _adopt_orphans() -> None:
    """A daemon that a rank leaves behind becomes a child of this process, on Linux."""
    if sys.platform.startswith("linux"):
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1)


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_char_p))


def _load_filter(program: bytes) -> None:
    """For this process and all that descend from it; none of them gains rights by a program that
    it executes."""
    libc = ctypes.CDLL(None, use_errno=True)
    loaded = _Program(len(program) // _INSTRUCTION, program)
    if libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) or libc.prctl(
        _PR_SET_SECCOMP, _MODE_FILTER, ctypes.byref(loaded), 0, 0
    ):
        code = ctypes.get_errno()
        raise OSError(code, f"the filter of system calls: {os.strerror(code)}")


def _limit(limits: dict[str, int]) -> None:
    import resource

    for name, most in limits.items():
        if (kind := getattr(resource, f"RLIMIT_{name}", None)) is not None:
            hard = resource.getrlimit(kind)[1]
            bound = most if hard == resource.RLIM_INFINITY else min(most, hard)
            resource.setrlimit(kind, (bound, bound))


def _start(order: dict[str, Any], rank: dict[str, Any]) -> "subprocess.Popen[bytes]":
    ends = (rank["out"], rank["err"], rank["events"])
    process = _popen(order, order["command"], rank, ends[2:], subprocess.DEVNULL)
    for end in ends:
        os.close(end)
    return process


def _forked(order: dict[str, Any]) -> list[int]:
    """The ranks, by one process that imports what all of them import, forks them, and ends; none,
    and their exit codes said, where it fails. What it prints is the first rank's."""
    readable, pids = os.pipe()
    ends = (*(rank[name] for rank in order["ranks"] for name in ("out", "err", "events")), pids)
    process = _popen(order, order["forker"], order["ranks"][0], ends, subprocess.PIPE)
    _say(order["status"], UP)
    for end in ends:
        os.close(end)
    assert process.stdin is not None
    with suppress(BrokenPipeError), process.stdin:
        process.stdin.write(json.dumps({"ranks": order["ranks"], "pids": pids}).encode())
    with open(readable, "rb") as told:
        forked = [int(pid) for pid in told.read().split()]
    code = process.wait()
    for rank in range(len(order["ranks"])) if not forked else ():
        _say(order["status"], f"{rank} {code or 1}")
    return forked


def _popen(
    order: dict[str, Any],
    command: Sequence[str],
    rank: dict[str, Any],
    passed: Sequence[int],
    stdin: int,
) -> "subprocess.Popen[bytes]":
    user = order["user"]
    return subprocess.Popen(
        command,
        env=rank["environment"],
        cwd=order["folder"],
        stdin=stdin,
        stdout=rank["out"],
        stderr=rank["err"],
        pass_fds=passed,
        start_new_session=True,
        **({} if user is None else {"user": user, "group": user, "extra_groups": ()}),
    )


def _watch(ranks: dict[int, int], status: int) -> None:
    """Say the exit code of every rank; bury what was adopted as well."""
    with suppress(ChildProcessError):  # the other thread buries too, when all is over
        while ranks:
            pid, code = os.wait()
            if pid in ranks:
                _say(status, f"{ranks.pop(pid)} {os.waitstatus_to_exitcode(code)}")


def _say(status: int, text: str) -> None:
    with suppress(OSError):
        os.write(status, f"{text}\n".encode())


def _end_with_leash(grace: float, ranks: dict[int, int]) -> None:
    """SIGUSR2 to the ranks for whatever comes on the leash. At its end SIGTERM to every child once,
    `grace` seconds, then SIGKILL until there are none."""
    while os.read(0, 4096):
        for pid in tuple(ranks):
            with suppress(OSError):
                os.kill(pid, signal.SIGUSR2)
    asked: set[int] = set()
    started = time.monotonic()
    while (children := _children()) and time.monotonic() - started < grace + PATIENCE:
        is_over = time.monotonic() - started > grace
        for pid in children:
            with suppress(OSError):
                if is_over or pid not in asked:
                    os.kill(pid, signal.SIGKILL if is_over else signal.SIGTERM)
                os.waitpid(pid, os.WNOHANG)
        asked.update(children)
        time.sleep(0.01)
    os._exit(0)


def _children() -> list[int]:
    """Living ones and those not buried yet; none where the kernel does not tell."""
    found: list[int] = []
    for task in Path("/proc/self/task").glob("*/children"):
        with suppress(OSError):
            found += map(int, task.read_text().split())
    return found


if __name__ == "__main__":
    main()

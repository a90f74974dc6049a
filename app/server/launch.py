"""Start and stop what a single machine needs: Redis, a node agent, the dashboard."""

import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Generator, Iterator
from contextlib import closing, contextmanager
from importlib.util import find_spec
from pathlib import Path
from types import FrameType

from app.server.watch import Child, Kept, follower, kept, kept_redis
from backend.bootstrap import Backend
from backend.errors import StageflowError
from backend.queue.embedded import EmbeddedRedis
from backend.queue.presence import is_held
from backend.settings import Settings


class PortInUse(StageflowError):
    """Somebody else listens on the dashboard's port."""


class WorkerNotInstalled(StageflowError):
    """This machine has the dashboard but not the worker's packages."""


class DidNotStart(StageflowError):
    """A process ended or stayed silent while it was being started."""


def check_port(host: str, port: int) -> None:
    """Raise `PortInUse` if the dashboard could not listen there."""
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as fault:
            raise PortInUse(
                f"port {port} on {host} cannot be used: {fault.strerror}",
                f"Stop what listens there, or choose another: stageflow up --port {port + 1}",
            ) from None


def environment(settings: Settings) -> dict[str, str]:
    """This process's environment with the settings spelled out, for a child."""
    fields = {name: getattr(settings, name) for name in type(settings).model_fields}
    return os.environ | {f"STAGEFLOW_{name.upper()}": str(value) for name, value in fields.items()}


def agent_command(module: str = "workers.agent", *arguments: str) -> list[str]:
    """The command of a node agent, or of another module of the worker. Raises
    `WorkerNotInstalled`."""
    if find_spec("torch") is None:
        raise WorkerNotInstalled(
            "this machine has no torch, so it cannot run jobs",
            "Install the worker: pip install 'stageflow[worker]', or start an agent elsewhere.",
        )
    return [sys.executable, "-m", module, *arguments]


def dashboard_command() -> list[str]:
    """The command of the dashboard, which reads its address from the settings."""
    return [sys.executable, "-m", "app.asgi"]


@contextmanager
def redis(settings: Settings) -> Iterator[Kept]:
    """The embedded Redis for as long as the block runs; one's own Redis is left alone, and one that
    runs until whoever started it ends it."""
    server = EmbeddedRedis(settings)
    if settings.redis_url:
        yield iter(())
        return
    server.start()
    try:
        yield kept_redis(server)
    finally:
        if server.is_ours:
            server.stop()


@contextmanager
def process(command: list[str], settings: Settings, log: Path) -> Iterator[Child]:
    """A child in its own session, its output in `log`; ended with the block."""
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("ab") as output:
        child = subprocess.Popen(
            command,
            env=environment(settings),
            stdout=output,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )
    try:
        yield child
    finally:
        _end(child)


def foreground(command: list[str], settings: Settings) -> int:
    """Run a child that shares the terminal until it ends; Ctrl-C and SIGTERM reach it once."""
    stop_on_sigterm()
    child = subprocess.Popen(command, env=environment(settings), start_new_session=True)
    try:
        return child.wait()
    except KeyboardInterrupt:
        return 0
    finally:
        _end(child)


def stop_on_sigterm() -> None:
    """Let SIGTERM unwind this process as Ctrl-C does, so that its children are ended."""
    signal.signal(signal.SIGTERM, _interrupt)


def _interrupt(_signal: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def _end(child: Child) -> None:
    if child.poll() is None:
        child.send_signal(signal.SIGTERM)
        try:
            child.wait(timeout=10)
        except subprocess.TimeoutExpired:
            os.killpg(child.pid, signal.SIGKILL)
            child.wait()


@contextmanager
def agent(backend: Backend) -> Iterator[Kept]:
    """A node agent for as long as the block runs; where one is alive on this node, one that follows
    when it is gone for good."""
    settings = backend.settings
    if is_held(settings):
        with closing(follower(lambda: is_held(settings), lambda: _agents(settings))) as following:
            yield following
        return

    def ready() -> bool:
        return is_held(settings) and settings.node in _alive(backend)

    with _kept("agent", agent_command(), settings, ready) as processes:
        yield processes


def _agents(settings: Settings) -> Generator[Child, None, None]:
    log = settings.home / "logs" / "agent.log"
    return kept("agent", lambda: process(agent_command(), settings, log), log)


def has_agent(backend: Backend) -> bool:
    """Does somebody take jobs? Of the own node the lock tells, of the others their signs of
    life: one that was killed looks alive up to the end of its lease."""
    return is_held(backend.settings) or bool(_alive(backend) - {backend.settings.node})


def _alive(backend: Backend) -> set[str]:
    return {node.name for node in backend.nodes.list() if node.alive}


@contextmanager
def dashboard(settings: Settings) -> Iterator[Kept]:
    """The dashboard for as long as the block runs. Raises `PortInUse`."""
    check_port(settings.host, settings.port)
    url = settings.local_address
    with _kept("dashboard", dashboard_command(), settings, lambda: is_healthy(url)) as processes:
        yield processes


@contextmanager
def sender(settings: Settings) -> Iterator[Kept]:
    """The process that sends to the trackers of the settings, where there are some."""
    if not settings.trackers:
        yield iter(())
        return
    command = [sys.executable, "-m", "app.cli", "tracker", "send"]
    with _kept("tracker", command, settings, lambda: True) as processes:
        yield processes


def is_healthy(url: str) -> bool:
    """Whether a Stageflow dashboard answers at `url`."""
    try:
        with urllib.request.urlopen(f"{url}/healthz", timeout=2) as answer:
            return b'"status"' in answer.read()
    except (urllib.error.URLError, OSError):
        return False


@contextmanager
def _kept(
    name: str, command: list[str], settings: Settings, ready: Callable[[], bool]
) -> Iterator[Kept]:
    """Raises `DidNotStart` where it is not `ready` in time."""
    log = settings.home / "logs" / f"{name}.log"
    with closing(kept(name, lambda: process(command, settings, log), log)) as processes:
        _await(next(processes), ready, f"the {name} did not start: see {log}")
        yield processes


def _await(child: Child, ready: Callable[[], bool], problem: str, limit: float = 180) -> None:
    """Wait until `ready`; raise `DidNotStart` if the child ends or `limit` seconds pass."""
    deadline = time.monotonic() + limit
    while not ready():
        if child.poll() is not None or time.monotonic() > deadline:
            raise DidNotStart(problem, "The last lines of that file say why.")
        time.sleep(0.1)

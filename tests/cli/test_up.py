"""`stageflow up` keeps its dashboard and its agent running, and leaves nothing behind."""

import os
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from backend.bootstrap import Backend, connect
from backend.planning.plan import Partition, Plan, Stage
from backend.queue.embedded import EmbeddedRedis
from backend.runs.request.spec import CheckpointSpec, DataSpec, TrainSpec
from backend.settings import Settings
from tests.cli.conftest import assert_nothing_runs
from tests.ports import free_port

PLAN = Plan("two", Partition((Stage(0, 4, (0,)), Stage(4, 8, (1,)))), "1f1b-flush", 4, batch=4)
FAST = {"STAGEFLOW_HEARTBEAT": "0.5", "STAGEFLOW_LEASE": "6"}

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


def wait(holds: Callable[[], object], said: Path) -> None:
    """A bound, not a measurement."""
    deadline = time.monotonic() + 240
    while not holds():
        assert time.monotonic() < deadline, said.read_text()
        time.sleep(0.05)


@pytest.fixture
def port() -> int:
    return free_port()


@pytest.fixture
def up(home: Path, port: int, tmp_path: Path) -> Iterator["subprocess.Popen[bytes]"]:
    """A real `stageflow up` with dashboard and agent; what it says is in `tmp_path`/said."""
    with (tmp_path / "said").open("wb") as said:
        process = subprocess.Popen(
            [sys.executable, "-m", "app.cli", "up", "--port", str(port)],
            env=os.environ | FAST | {"STAGEFLOW_HOME": str(home)},
            stdout=said,
            stderr=subprocess.STDOUT,
            preexec_fn=_hear_ctrl_c,
        )
    try:
        yield process
    finally:
        process.terminate()
        process.wait(240)


def _hear_ctrl_c() -> None:
    """What a shell starts in the background is deaf to it, and so are its children."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def part(up: "subprocess.Popen[bytes]", module: str) -> psutil.Process | None:
    """The process of that module which `up` has started."""
    for child in psutil.Process(up.pid).children():
        with suppress(psutil.Error):
            if child.cmdline()[1:] == ["-m", module]:
                return child
    return None


def answers(port: int) -> bool:
    with (
        suppress(OSError),
        urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=120) as page,
    ):
        return b"<html" in page.read()
    return False


def endless(backend: Backend) -> int:
    """A training that ends when somebody ends it, with a checkpoint every ten updates."""
    spec = TrainSpec(
        backend.definitions.add_zoo("mlp").id,
        PLAN,
        data=DataSpec("digits"),
        epochs=100_000,
        checkpoints=CheckpointSpec(updates=10, seconds=0),
    )
    return backend.runs.submit(spec).id


def test_dashboard_agent_and_redis_come_back(
    up: "subprocess.Popen[bytes]", home: Path, port: int, tmp_path: Path
) -> None:
    said = tmp_path / "said"
    wait(lambda: "Node agent" in said.read_text(), said)
    backend = connect(Settings(home=home))
    agent, web = part(up, "workers.agent"), part(up, "app.asgi")
    assert agent
    assert web
    run = endless(backend)

    def losses() -> int:
        return len(backend.runs.metrics.list(run, "loss"))

    wait(losses, said)

    web.kill()
    web.wait()
    before = losses()
    wait(lambda: answers(port), said)
    wait(lambda: losses() > before and backend.runs.checkpoints.list(run), said)
    assert len(backend.runs.attempts(run)) == 1
    assert part(up, "workers.agent") == agent
    assert part(up, "app.asgi") not in (None, web)

    agent.kill()
    agent.wait()
    wait(lambda: backend.runs.get(run).attempt == 2, said)
    before = losses()
    wait(lambda: losses() > before, said)
    assert part(up, "workers.agent") not in (None, agent)
    assert said.read_text().count("ended by itself (exit code -9)") == 2

    server = EmbeddedRedis(backend.settings)
    pid = server.pid()
    assert pid
    os.kill(pid, signal.SIGKILL)
    wait(lambda: server.is_up() and server.pid() != pid, said)
    assert "Redis ended by itself" in said.read_text()

    up.send_signal(signal.SIGINT)
    assert up.wait(240) == 0
    backend.close()
    assert_nothing_runs(home)

"""A backend in a folder of its own, and ranks that do what a test's definition says."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from textwrap import dedent

import psutil
import pytest

from backend.bootstrap import Backend, connect
from backend.planning.plan import Partition, Plan, Stage
from backend.queue.embedded import EmbeddedRedis
from backend.runs.job import Job
from backend.runs.request.spec import RunSpec, TrainSpec
from backend.runs.run import Run
from backend.settings import Settings
from tests.migrated import migrated
from workers.stop import Stop
from workers.supervisor.ranks import processes
from workers.supervisor.setup.preparation import job_file
from workers.supervisor.supervision import Supervision

FAKE_RANK = Path(__file__).with_name("fake_rank.py")
EVENTS = "from backend.runs.events import *\ndef model(): ...\n"


def fake_command(job: Job) -> list[str]:
    return [sys.executable, "-u", "-c", FAKE_RANK.read_text(), str(job_file(job))]


def two_stage_plan(num_layers: int = 2, microbatch: int = 16) -> Plan:
    cut = num_layers // 2
    stages = (Stage(0, cut, (0,)), Stage(cut, num_layers, (1,)))
    return Plan("even", Partition(stages), "pipedream", microbatch)


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(home=tmp_path / "home", node="tester", heartbeat=0.5, lease=5)


@pytest.fixture
def backend(settings: Settings) -> Iterator[Backend]:
    migrated(settings)
    backend = connect(settings)
    yield backend
    backend.close()


@pytest.fixture
def queued(backend: Backend) -> Callable[[str], Run]:
    """Store a run of two fake ranks whose definition has this `work`."""

    def submit(work: str) -> Run:
        source = EVENTS + dedent(work)
        definition = backend.definitions.add("fake.py", source.encode())
        return backend.runs.submit(TrainSpec(definition.id, two_stage_plan()))

    return submit


@pytest.fixture
def supervised(backend: Backend) -> Callable[..., Run]:
    """Carry a queued run to its end in this process; meanwhile call `during`."""

    def carry(
        run: Run,
        during: Callable[[Path], None] | None = None,
        silence: float = 60,
        stop: Stop | None = None,
    ) -> Run:
        attempt = backend.dispatch.claim(run.id, "tester")
        assert attempt is not None
        stop = stop or Stop()
        supervision = Supervision(backend, attempt, stop, (), fake_command, silence)
        thread = threading.Thread(target=supervision.run)
        thread.start()
        if during is not None:
            during(backend.settings.run_folder(run.id, attempt.number))
        thread.join(240)
        assert not thread.is_alive()
        return backend.runs.get(run.id)

    return carry


@pytest.fixture
def eventually() -> Callable[..., None]:
    """Wait for a condition; a bound, not a measurement."""

    def wait(holds: Callable[[], object], seconds: float = 240) -> None:
        deadline = time.monotonic() + seconds
        while not holds():
            assert time.monotonic() < deadline, "it did not happen"
            time.sleep(0.05)

    return wait


@pytest.fixture
def living() -> Callable[[Path], list[psutil.Process]]:
    """The processes of an attempt, wherever they have gone."""
    return lambda folder: processes.of_attempt(folder, ())


class Stack:
    """A home with a database, a real Redis and a real agent process."""

    def __init__(self, settings: Settings) -> None:
        migrated(settings)
        self.settings = settings
        self.backend = connect(settings)
        self.redis = EmbeddedRedis(settings)
        self.agent: subprocess.Popen[bytes] | None = None

    @property
    def variables(self) -> dict[str, str]:
        """The environment of a command of this home."""
        fields = {f"STAGEFLOW_{k.upper()}": str(v) for k, v in self.settings.model_dump().items()}
        return os.environ | fields

    def start_agent(self, program: Sequence[str] = ("-m", "workers.agent")) -> None:
        """Python runs `program`."""
        with (self.settings.home / "agent.log").open("ab") as output:
            self.agent = subprocess.Popen(
                [sys.executable, *program],
                env=self.variables,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self.wait(lambda: [node for node in self.backend.nodes.list() if node.alive])

    def end_agent(self, number: signal.Signals = signal.SIGTERM) -> int:
        """The agent's exit code."""
        assert self.agent is not None
        self.agent.send_signal(number)
        return self.agent.wait(120)

    def finished(self, spec: RunSpec) -> Run:
        return self.until_final(self.backend.runs.submit(spec).id)

    def until_final(self, run_id: int) -> Run:
        self.wait(lambda: self.backend.runs.get(run_id).state.is_final)
        return self.backend.runs.get(run_id)

    def wait(self, holds: Callable[[], object], seconds: float = 300) -> None:
        deadline = time.monotonic() + seconds
        while not holds():
            assert time.monotonic() < deadline, self.agent_log()
            time.sleep(0.05)

    def agent_log(self) -> str:
        return (self.settings.home / "agent.log").read_text()[-5000:]

    def close(self) -> None:
        if self.agent is not None and self.agent.poll() is None:
            self.end_agent()
        self.redis.stop()
        self.backend.close()


@pytest.fixture(scope="module")
def new_stack() -> Callable[[Settings], Stack]:
    """A stack with its Redis; whoever asks for it closes it."""

    def make(settings: Settings) -> Stack:
        stack = Stack(settings)
        stack.redis.start()
        return stack

    return make


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """One for a whole file: its tests leave the agent and Redis running."""
    home = tmp_path_factory.mktemp("stack") / "home"
    stack = Stack(Settings(home=home, node="tester", heartbeat=0.5, lease=4))
    stack.redis.start()
    stack.start_agent()
    yield stack
    stack.close()

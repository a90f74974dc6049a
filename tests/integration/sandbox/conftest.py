"""Runs that attack the machine, carried by the real supervisor on a real database."""

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent

import pytest

from backend.bootstrap import Backend, connect
from backend.planning.plan import Partition, Plan, Stage
from backend.runs.job import Job
from backend.runs.request.spec import DataSpec, ProfileSpec, RunSpec, TrainSpec
from backend.runs.run import Run
from backend.runs.states import RunState
from backend.sandbox_level import SandboxLevel
from backend.settings import Settings
from tests.migrated import migrated
from workers.sandbox.sandbox import Sandbox, detect
from workers.stop import Stop
from workers.supervisor.setup.preparation import job_file, rank_command
from workers.supervisor.supervision import Supervision

LIMITS = Sandbox(SandboxLevel.LIMITS, "for this test")
EVENTS = "from backend.runs.events import *\ndef model(): ...\n"
RANK = """
import os, sys, traceback
from pathlib import Path
from backend.codec import from_json
from backend.runs.events import RankError
from backend.runs.job import Job
from workers.runtime.reports.event_pipe import event_pipe, tell
job = from_json(Job, Path(sys.argv[1]).read_bytes())
rank = int(os.environ["RANK"])
pipe = event_pipe()
say = lambda event: tell(pipe, event)
space = {}
exec(Path(job.definition).read_text(), space)
try:
    space["work"](rank, say, Path(job.folder))
except Exception as error:
    text = f"{type(error).__name__}: {error}"
    say(RankError(rank, "ModelRaised", text, "", traceback.format_exc()))
    raise SystemExit(1)
"""
"""A rank without torch: calls `work(rank, say, folder)` and tells what that raises."""


@dataclass
class Lab:
    """A backend whose limits a test sets; `sandbox` is the one that its runs get."""

    backend: Backend
    sandbox: Sandbox

    @property
    def settings(self) -> Settings:
        return self.backend.settings

    def works(self, work: str, filename: str = "attack.py", data: DataSpec | None = None) -> Run:
        """Two ranks without torch that do this `work`."""
        stages = (Stage(0, 1, (0,)), Stage(1, 2, (1,)))
        plan = Plan("even", Partition(stages), "pipedream", 16)
        source = (EVENTS + dedent(work)).encode()
        definition = self.backend.definitions.add(filename, source, "attack")
        spec = TrainSpec(definition.id, plan, data=data or DataSpec())
        run = self.backend.runs.submit(spec)
        return self._carried(run, without_torch)

    def profiles(self, source: str) -> Run:
        """The real profiler on this definition."""
        definition = self.backend.definitions.add("attack.py", dedent(source).encode())
        run = self.backend.runs.submit(ProfileSpec(definition.id, 4, 1))
        return self._carried(run, rank_command)

    def carries(self, spec: RunSpec) -> Run:
        """The real mains on what is asked for."""
        return self._carried(self.backend.runs.submit(spec), rank_command)

    def text(self, run: Run) -> str:
        """The whole log."""
        return "\n".join(line.text for line in self.backend.runs.logs.list(run.id, limit=1000))

    def _carried(self, run: Run, command: Callable[[Job], list[str]]) -> Run:
        attempt = self.backend.dispatch.claim(run.id, "tester")
        assert attempt is not None
        supervision = Supervision(self.backend, attempt, Stop(), (), command, sandbox=self.sandbox)
        supervision.run()
        ended = self.backend.runs.get(run.id)
        assert ended.state.is_final
        return ended


def without_torch(job: Job) -> list[str]:
    return [sys.executable, "-u", "-c", RANK, str(job_file(job))]


def failure(run: Run) -> tuple[str, str]:
    """(kind, message), for a run that failed with advice for its owner."""
    assert run.state is RunState.FAILED
    assert run.error is not None
    assert run.error.advice
    return run.error.kind, run.error.message


@pytest.fixture(scope="session")
def bubblewrap(tmp_path_factory: pytest.TempPathFactory) -> Sandbox:
    found = detect(Settings(home=tmp_path_factory.mktemp("trial") / "home"))
    if found.level is not SandboxLevel.BUBBLEWRAP:
        pytest.skip(found.reason)
    return found


@pytest.fixture
def make_lab(tmp_path: Path) -> Iterator[Callable[..., Lab]]:
    made: list[Backend] = []

    def make(sandbox: Sandbox, minimum=SandboxLevel.LIMITS, **limits) -> Lab:
        fields = {"max_seconds": 120.0} | limits
        settings = Settings(
            home=tmp_path / "home",
            node="tester",
            heartbeat=0.5,
            lease=20,
            sandbox=minimum,
            devices=1,  # a run has all of it, and the whole of its limits
            **fields,
        )
        migrated(settings)
        made.append(connect(settings))
        return Lab(made[-1], sandbox)

    yield make
    for backend in made:
        backend.close()


@pytest.fixture
def lab(make_lab: Callable[..., Lab], bubblewrap: Sandbox) -> Callable[..., Lab]:
    """In bubblewrap, with the limits that are given."""
    return lambda **limits: make_lab(bubblewrap, **limits)


@pytest.fixture(params=["bubblewrap", "limits"])
def either_lab(request: pytest.FixtureRequest, make_lab: Callable[..., Lab]) -> Callable[..., Lab]:
    """The same at both levels."""
    level = LIMITS if request.param == "limits" else request.getfixturevalue("bubblewrap")
    return lambda **limits: make_lab(level, **limits)

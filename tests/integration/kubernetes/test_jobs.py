"""Jobs that run: their pods are processes of this machine."""

import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from backend.runs.pools.job import JobOrder, JobState
from tests.contract.kubelet import kubernetes_engine
from workers.pools.kubernetes.engine import KubernetesEngine

NAME = "stageflow-gpu-7-1"
AGENT = """
import os, signal, sys, time
def told(*_):
    print("told", flush=True)
    time.sleep(0.3)
    sys.exit(0)
signal.signal(signal.SIGTERM, told)
print("place", os.environ["JOB_COMPLETION_INDEX"], flush=True)
open(sys.argv[1] + os.environ["JOB_COMPLETION_INDEX"], "w").close()
time.sleep(60)
"""


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[KubernetesEngine]:
    with kubernetes_engine(tmp_path) as engine:
        yield engine


def order(code: str, *arguments: str, seconds: float = 0.0, warning: float = 20.0) -> JobOrder:
    command = (sys.executable, "-c", code, *arguments)
    return JobOrder(NAME, 7, 2, 1, command, seconds, warning)


def until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 240
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def started(engine: KubernetesEngine, folder: Path, **given: float) -> None:
    mark = str(folder / "mark")
    engine.submit(order(AGENT, mark, **given))
    until(lambda: all(Path(f"{mark}{place}").exists() for place in range(2)))


def state(engine: KubernetesEngine) -> JobState:
    found = engine.look().get(NAME)
    return found.state if found else JobState.GONE


def test_a_job_runs_to_its_end(engine: KubernetesEngine) -> None:
    engine.submit(order("import os; print('place', os.environ['JOB_COMPLETION_INDEX'])"))
    until(lambda: state(engine) is JobState.GONE)
    assert engine.output(NAME) == "place 0\n"
    assert engine.look()[NAME].reason == "jobset completed successfully"


def test_a_job_waits_for_room(engine: KubernetesEngine, tmp_path: Path) -> None:
    started(engine, tmp_path)
    room = engine.room()
    assert (room.total, room.free) == (4, 2)
    second = replace(order("pass"), name="stageflow-gpu-8-1", devices=2)
    engine.submit(second)
    assert engine.look()[second.name].state is JobState.WAITING
    engine.end(NAME)
    until(lambda: engine.look()[second.name].state is JobState.GONE)
    assert engine.look()[second.name].reason == "jobset completed successfully"
    assert engine.room().free == 4


def test_agents_are_told_before_a_job_ends(engine: KubernetesEngine, tmp_path: Path) -> None:
    started(engine, tmp_path)
    assert engine.look()[NAME].hosts == ("n0", "n1")
    engine.end(NAME)
    assert state(engine) is JobState.RUNNING
    engine.end(NAME)
    until(lambda: NAME not in engine.look())
    assert "told" in (tmp_path / f"{NAME}-agent-0-0").read_text()


def test_a_jobs_time_ends_with_a_warning(engine: KubernetesEngine, tmp_path: Path) -> None:
    started(engine, tmp_path, seconds=2.0, warning=1.0)
    until(lambda: state(engine) is JobState.GONE)
    assert "active longer" in engine.look()[NAME].reason
    until(lambda: "told" in (tmp_path / f"{NAME}-agent-0-0").read_text())


def test_an_agent_that_fails_ends_the_job(engine: KubernetesEngine) -> None:
    fails = "import os, sys, time; i = os.environ['JOB_COMPLETION_INDEX']; print('agent', i)"
    engine.submit(order(f"{fails}; sys.exit(1) if i == '1' else time.sleep(60)"))
    until(lambda: state(engine) is JobState.GONE)
    until(lambda: engine.output(NAME) != "")
    assert "failures" in engine.look()[NAME].reason

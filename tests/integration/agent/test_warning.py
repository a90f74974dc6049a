"""An agent that will be ended soon: the run that it leads saves, and waits for another agent."""

import resource
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from backend.bootstrap import Backend
from backend.runs.attempts.checkpoints import NOT_BEGUN
from backend.runs.request.spec import ProfileSpec
from backend.runs.run import Run
from backend.runs.states import RunState
from workers import descriptors
from workers.node_agent import NodeAgent
from workers.stop import Stop
from workers.supervisor.state.ending import PATIENCE

pytestmark = pytest.mark.slow

Eventually = Callable[..., None]
SLOW_TO_SAVE = """
import resource
import time
from workers.supervisor.ranks.requests import SAVE_NOW
def work(rank, say, folder):
    say(Started(rank))
    say(Metrics("score" if rank else "loss", (1,), (1.0,), (0.0,), 0))
    while not (folder / SAVE_NOW).exists():
        time.sleep(0.05)
    time.sleep(4)
    file = folder / f"stage-{rank}-pipeline-0.safetensors"
    file.write_bytes(b"weights")
    say(Saved(rank, 0, 16, 1, str(file), 2))
    time.sleep(600)
"""
WORKS = """
import time
def work(rank, say, folder):
    say(Started(rank))
    time.sleep(600)
"""
SLEEPS = b"""
import resource
import time
def model():
    time.sleep(600)
def example(batch): ...
"""


def test_a_warning_waits_for_a_checkpoint_that_a_stop_does_not_wait_for(
    backend: Backend,
    queued: Callable[[str], Run],
    supervised: Callable[..., Run],
    living: Callable[[Path], list[psutil.Process]],
    eventually: Eventually,
):
    run, stop = queued(SLOW_TO_SAVE), Stop()
    warned_at = 0.0

    def warn(folder: Path) -> None:
        nonlocal warned_at
        eventually(lambda: backend.runs.metrics.names(run.id) == ["loss", "score"])
        warned_at = time.monotonic()
        stop.warn(60)
        eventually(lambda: not living(folder))

    after = supervised(run, warn, stop=stop)
    assert PATIENCE < 4 < time.monotonic() - warned_at < 30
    assert after.state is RunState.QUEUED
    assert [kept.mark.step for kept in backend.runs.checkpoints.list(run.id)] == [1]
    (attempt,) = backend.runs.attempts(run.id)
    assert attempt.outcome == "restarted"
    assert attempt.error is not None
    assert attempt.error.kind == "AgentWarned"
    assert "within 60 s" in attempt.error.message


def test_a_run_without_a_checkpoint_fails_and_says_why(
    backend: Backend,
    queued: Callable[[str], Run],
    supervised: Callable[..., Run],
    eventually: Eventually,
):
    run, stop = queued(WORKS), Stop()

    def warn(folder: Path) -> None:
        eventually(lambda: backend.runs.get(run.id).state is RunState.RUNNING)
        stop.warn(60)

    ended = supervised(run, warn, stop=stop)
    assert ended.state is RunState.FAILED
    assert ended.error is not None
    assert ended.error.kind == "AgentWarned"
    assert "checkpoint" in ended.error.advice


@pytest.mark.parametrize("ends", [lambda stop: stop.warn(60), Stop.set], ids=["warned", "stopped"])
def test_a_run_whose_agent_ends_before_its_ranks_are_started_is_queued_again(
    backend: Backend,
    queued: Callable[[str], Run],
    supervised: Callable[..., Run],
    ends: Callable[[Stop], None],
):
    run, stop = queued(WORKS), Stop()
    ends(stop)
    after = supervised(run, stop=stop)
    assert (after.state, after.error) == (RunState.QUEUED, None)
    (attempt,) = backend.runs.attempts(run.id)
    assert attempt.error is not None
    assert (attempt.outcome, attempt.error.kind) == ("restarted", NOT_BEGUN)
    assert not [line for line in backend.runs.logs.list(run.id) if "starting" in line.text]


def test_a_warned_agent_takes_up_nothing_and_is_waited_for(
    backend: Backend, living: Callable[[Path], list[psutil.Process]], eventually: Eventually
):
    """`join` would be gone before the run were, had it not the seconds of the warning. Before, the
    agent cannot open the files of a run, and leaves it to whoever can."""
    definition = backend.definitions.add("sleeps.py", SLEEPS)
    first = backend.runs.submit(ProfileSpec(definition.id, repetitions=1))
    agent = NodeAgent(backend)
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (before[0] - descriptors.left() + 40, before[1]))
    try:
        agent.look()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
    assert backend.runs.get(first.id).state is RunState.QUEUED
    agent.look()
    eventually(lambda: living(backend.settings.run_folder(first.id, 1)))
    agent.warn(60)
    agent.join(seconds=0.01)
    assert backend.runs.get(first.id).state is RunState.QUEUED  # its model is being made
    second = backend.runs.submit(ProfileSpec(definition.id, repetitions=1))
    agent.look()
    assert backend.runs.get(second.id).state is RunState.QUEUED

"""An agent that is killed or stopped, and a Redis that goes away: nothing is left behind."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from backend.queue.client import redis_client
from backend.queue.messages import queue_name
from backend.runs.attempts.checkpoints import NOT_BEGUN
from backend.runs.request.spec import ProfileSpec
from backend.runs.states import RunState

pytestmark = pytest.mark.slow

Living = Callable[[Path], list[psutil.Process]]

SLEEPS = """
import subprocess, sys, time
child = "import signal, time; signal.signal(15, signal.SIG_IGN); time.sleep(600)"
subprocess.Popen([sys.executable, "-c", child], start_new_session=True)
def model(): ...
def example(batch):
    time.sleep(600)
"""
SLOW_TO_LOAD = """
import time
import torch
from torch import nn
def model():
    time.sleep(5)
    return nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 3))
def example(batch):
    return torch.rand(batch, 8), torch.randint(3, (batch,))
"""
QUICK = """
import torch
from torch import nn
def model():
    return nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 3))
def example(batch):
    return torch.rand(batch, 8), torch.randint(3, (batch,))
"""

TOLD_AMID_LOGGING = """
import logging, os, sys, threading, time
from workers.agent import main
clear, told = logging.Manager._clear_cache, []
def cleared(manager):
    began = threading.active_count() > 3 and not told  # its reports have
    if began and threading.current_thread() is threading.main_thread():
        told.append(True)
        print('told', flush=True)
        clear(manager)
        logging._lock.acquire()  # as the function itself does, without a `finally`
        time.sleep(1.5)  # reports come to the lock
        os.kill(os.getpid(), {number})
        logging._lock.release()
    clear(manager)
logging.Manager._clear_cache = cleared
sys.exit(main())
"""


def asleep(stack, living: Living) -> tuple[int, Path]:
    """A run whose rank and grandchild sleep before its work begins."""
    definition = stack.backend.definitions.add("sleeps.py", SLEEPS.encode())
    run = stack.backend.runs.submit(ProfileSpec(definition.id, repetitions=1))
    folder = stack.settings.run_folder(run.id, 1)
    stack.wait(lambda: len(living(folder)) == 2)
    return run.id, folder


def is_queued_again(stack, run_id: int) -> None:
    """Nothing has begun, so nothing is lost."""
    run = stack.backend.runs.get(run_id)
    assert (run.state, run.error) == (RunState.QUEUED, None)
    (told,) = stack.backend.runs.attempts(run_id)
    assert told.error is not None
    assert (told.outcome, told.error.kind) == ("restarted", NOT_BEGUN)


def quick(stack) -> ProfileSpec:
    definition = stack.backend.definitions.add("quick.py", QUICK.encode())
    return ProfileSpec(definition.id, repetitions=1)


def test_a_killed_agent_loses_the_run_and_the_next_one_cleans_up(stack, living: Living):
    run_id, folder = asleep(stack, living)
    stack.end_agent(signal.SIGKILL)
    stack.wait(lambda: not living(folder))
    assert (folder / "ranks.json").exists()
    stack.start_agent()
    run = stack.until_final(run_id)
    assert run.state is RunState.FAILED
    assert run.error is not None
    assert run.error.kind == "AgentLost"
    stack.wait(lambda: not (folder / "ranks.json").exists())
    assert stack.finished(quick(stack)).state is RunState.SUCCEEDED


def test_a_stopped_agent_ends_its_ranks_and_says_so(stack, living: Living):
    [node] = stack.backend.nodes.list()
    held = [asleep(stack, living) for _ in node.devices]  # so that another run waits
    waiting = stack.backend.runs.submit(quick(stack))
    assert stack.end_agent() == 0
    for run_id, folder in held:
        assert not living(folder)
        is_queued_again(stack, run_id)
        stack.backend.runs.cancel(run_id)
    assert not stack.backend.nodes.list()
    assert stack.backend.runs.get(waiting.id).state is RunState.QUEUED
    stack.start_agent()
    assert stack.until_final(waiting.id).state is RunState.SUCCEEDED


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_run_that_is_claimed_as_its_agent_stops_is_queued_again(
    stack, living: Living, number: signal.Signals
):
    """Its ranks are being started, or their model made: nothing is lost by beginning anew."""
    definition = stack.backend.definitions.add("slow.py", SLOW_TO_LOAD.encode())
    run = stack.backend.runs.submit(ProfileSpec(definition.id, repetitions=1))
    stack.wait(lambda: stack.backend.runs.get(run.id).state is RunState.STARTING)
    assert stack.end_agent(number) == 0
    assert not living(stack.settings.run_folder(run.id, 1))
    is_queued_again(stack, run.id)
    stack.start_agent()
    assert stack.until_final(run.id).state is RunState.SUCCEEDED


def test_without_redis_a_run_waits_and_the_agent_finds_it(stack):
    stack.redis.stop()
    run = stack.backend.runs.submit(quick(stack))
    reason = stack.backend.runs.why_waiting(run)
    assert run.state is RunState.QUEUED
    assert reason is not None
    assert "Redis" in reason
    assert stack.until_final(run.id).state is RunState.SUCCEEDED


def test_an_agent_without_redis_ends_the_run_that_it_found_by_itself(stack, living: Living):
    stack.redis.stop()
    run_id, folder = asleep(stack, living)
    assert stack.end_agent() == 0
    assert not living(folder)
    is_queued_again(stack, run_id)
    stack.backend.runs.cancel(run_id)
    stack.redis.start()
    stack.start_agent()
    assert stack.finished(quick(stack)).state is RunState.SUCCEEDED


def test_after_redis_is_back_the_agent_takes_messages_again(stack):
    stack.redis.stop()
    stack.redis.start()
    runs = [stack.backend.runs.submit(quick(stack)) for _ in range(2)]
    assert [stack.until_final(run.id).state for run in runs] == [RunState.SUCCEEDED] * 2
    with redis_client(stack.settings) as client:
        stack.wait(lambda: client.llen(f"stageflow:{queue_name('tester')}") == 0)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_an_agent_can_be_stopped_as_soon_as_it_is_up(stack, number: signal.Signals):
    stack.end_agent()
    stack.start_agent()
    assert stack.end_agent(number) == 0
    assert not stack.backend.nodes.list()
    stack.start_agent()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_an_agent_ends_though_it_is_told_while_it_holds_a_lock(stack, number: signal.Signals):
    """Celery sets up logging just after the agent has begun its reports, which log too."""
    stack.end_agent()
    command = [sys.executable, "-c", TOLD_AMID_LOGGING.format(number=int(number))]
    ended = subprocess.run(command, env=stack.variables, capture_output=True, timeout=240)
    assert ended.returncode == 0
    assert b"told" in ended.stdout
    assert not stack.backend.nodes.list()
    stack.start_agent()


def test_an_agent_on_an_old_schema_says_what_to_do(tmp_path: Path):
    environment = os.environ | {"STAGEFLOW_HOME": str(tmp_path), "STAGEFLOW_DATABASE_URL": ""}
    command = [sys.executable, "-m", "workers.agent"]
    ended = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert ended.returncode == 1
    assert "stageflow db upgrade" in ended.stderr
    assert "Traceback" not in ended.stderr

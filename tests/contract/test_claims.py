"""Processes that claim the same runs at once: every run goes to one of them, once."""

import os
import subprocess
import sys
from pathlib import Path

from backend.bootstrap import Backend
from backend.definitions.definition import Definition
from backend.runs.request.spec import ProfileSpec
from backend.runs.states import RunState

NUM_RUNS, NUM_NODES = 40, 4


def test_no_run_is_claimed_twice(backend: Backend, definition: Definition):
    ids = [backend.runs.submit(ProfileSpec(definition.id)).id for _ in range(NUM_RUNS)]
    environment = os.environ | {
        "STAGEFLOW_HOME": str(backend.settings.home),
        "STAGEFLOW_DATABASE_URL": backend.settings.database_url,
    }
    script = Path(__file__).with_name("claim_all.py")
    agents = [
        subprocess.Popen(
            [sys.executable, str(script), f"node{number}", str(ids[0]), str(ids[-1])],
            env=environment,
            cwd=Path(__file__).parents[2],
            stdout=subprocess.PIPE,
            text=True,
        )
        for number in range(NUM_NODES)
    ]
    outputs = [agent.communicate()[0] for agent in agents]
    assert [agent.returncode for agent in agents] == [0] * NUM_NODES
    claimed = sorted(line for output in outputs for line in output.splitlines())
    assert claimed == sorted(f"{run_id} 1" for run_id in ids)
    for run_id in ids:
        run = backend.runs.get(run_id)
        assert (run.state, run.attempt) == (RunState.STARTING, 1)
        assert [line.text for line in backend.runs.logs.list(run_id)] == [run.node]

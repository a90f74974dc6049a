"""Agents of their own processes that claim the same runs at once."""

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from backend.bootstrap import Backend

SCRIPT = Path(__file__).with_name("claim_all.py")


def claimed(backend: Backend, nodes: Sequence[str], ids: Sequence[int]) -> list[str]:
    """What a process for each of these nodes got of the runs: "run attempt", sorted."""
    environment = os.environ | {
        "STAGEFLOW_HOME": str(backend.settings.home),
        "STAGEFLOW_DATABASE_URL": backend.settings.database_url,
    }
    agents = [
        subprocess.Popen(
            [sys.executable, str(SCRIPT), node, str(min(ids)), str(max(ids))],
            env=environment,
            cwd=SCRIPT.parents[2],
            stdout=subprocess.PIPE,
            text=True,
        )
        for node in nodes
    ]
    outputs = [agent.communicate()[0] for agent in agents]
    assert [agent.returncode for agent in agents] == [0] * len(nodes)
    return sorted(line for output in outputs for line in output.splitlines())

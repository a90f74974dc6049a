"""An agent's presence ends with its process, not with its lease."""

import subprocess
import sys
from pathlib import Path

import pytest

from backend.queue.presence import AgentRunning, Presence, is_held
from backend.settings import Settings

HOLDS = "from backend.queue.presence import *; from backend.settings import load_settings; "
HOLDS += "p = Presence(load_settings()); print('held', flush=True); import time; time.sleep(600)"


def test_one_agent_per_node_and_home(home: Path):
    here, other = Settings(home=home, node="a/b"), Settings(home=home, node="c")
    assert not is_held(here)
    presence = Presence(here)
    assert is_held(here)
    assert not is_held(other)
    with pytest.raises(AgentRunning, match="node a/b runs in"):
        Presence(here)
    presence.close()
    assert not is_held(here)


def test_a_killed_agent_is_gone_at_once(home: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("STAGEFLOW_NODE", "n")
    agent = subprocess.Popen([sys.executable, "-c", HOLDS], stdout=subprocess.PIPE, text=True)
    assert agent.stdout is not None
    assert agent.stdout.readline() == "held\n"
    settings = Settings(home=home, node="n")
    assert is_held(settings)
    agent.kill()
    agent.wait()
    assert not is_held(settings)

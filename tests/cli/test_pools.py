"""Pools on the command line."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from backend.cluster.cluster import Device
from backend.runs.pools.room import ForetoldStart, Machines, PoolRoom
from tests.app import seed
from tests.cli.conftest import Command


def test_when_a_job_would_start_is_said_before_the_launch(
    stageflow: Command, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STAGEFLOW_HOME", str(home))
    monkeypatch.setenv("STAGEFLOW_LEASE", "3600")  # the pool gives one sign of life
    backend = seed.fresh()
    plan, now = seed.everything(backend).plan, datetime.now(UTC)
    starts = (ForetoldStart(1, 4, now, now),)
    backend.pools.beat("gpu", "slurm", PoolRoom((Machines(Device("h100"), 4, (4,)),), 0.0, starts))
    backend.close()
    said = stageflow("run", "--plan", str(plan), "--pool", "gpu", "--detach")
    assert said.code == 0
    assert "with 4 devices would start at once, by the estimate of gpu" in " ".join(
        said.err.split()
    )

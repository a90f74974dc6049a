"""Ranks that torchrun starts, by the line that `stageflow run --print-command` prints."""

import shlex
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from app.commands.by_hand import print_command
from backend.bootstrap import Backend
from backend.errors import InvalidInput
from backend.planning.plan import Partition, Plan, Stage
from backend.runs.events import Metrics, read_line
from backend.runs.pools.room import PoolRoom
from backend.runs.request.spec import DataSpec, PoolSpec, TrainSpec
from backend.runs.states import RunState
from workers.node_agent import NodeAgent
from workers.zoo import mlp

pytestmark = pytest.mark.slow


@pytest.fixture
def spec(backend: Backend) -> TrainSpec:
    definition = backend.definitions.add("mlp.py", Path(mlp.__file__).read_bytes())
    stages = (Stage(0, 4, (0,)), Stage(4, 8, (1,)))
    plan = Plan("even", Partition(stages), "1f1b-flush", 8, batch=4)
    return TrainSpec(definition.id, plan, data=DataSpec("digits"), epochs=1)


def test_the_line_trains_what_a_node_trains(
    backend: Backend, spec: TrainSpec, tmp_path: Path, capsys, eventually
) -> None:
    print_command(backend, spec, tmp_path / "by-hand")
    line = shlex.split(capsys.readouterr().out)
    assert line[:3] == ["torchrun", "--standalone", "--nproc-per-node=2"]
    told = subprocess.run(
        [sys.executable, "-m", "torch.distributed.run", *line[1:]],
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    )
    losses = [
        loss
        for event in map(read_line, told.stdout.splitlines())
        if isinstance(event, Metrics) and event.name == "loss"
        for loss in event.values
    ]
    run = backend.runs.submit(spec)
    agent = NodeAgent(backend)
    agent.start()
    eventually(lambda: backend.runs.get(run.id).state.is_final, 120)
    agent.stop()
    agent.join()
    assert backend.runs.get(run.id).state is RunState.SUCCEEDED
    assert losses == [point.value for point in backend.runs.metrics.list(run.id, "loss")]


def test_what_cannot_be_started_by_hand_is_refused(
    backend: Backend, spec: TrainSpec, tmp_path: Path
) -> None:
    (tmp_path / "kept.txt").write_text("mine")
    with pytest.raises(InvalidInput, match="not an empty folder"):
        print_command(backend, spec, tmp_path)
    assert (tmp_path / "kept.txt").read_text() == "mine"
    backend.pools.beat("gpu", "slurm", PoolRoom(()))
    uneven = replace(spec, pool=PoolSpec("gpu", 3))
    with pytest.raises(InvalidInput, match="2 ranks on 3 machines"):
        print_command(backend, uneven, tmp_path / "new")


def test_several_machines_meet_at_the_first_one(
    backend: Backend, spec: TrainSpec, tmp_path: Path, capsys
) -> None:
    backend.pools.beat("gpu", "slurm", PoolRoom(()))
    print_command(backend, replace(spec, pool=PoolSpec("gpu", 2)), tmp_path / "new")
    head, line = capsys.readouterr().out.splitlines()
    assert "scontrol show hostnames" in head
    assert line.startswith("srun --nodes=2 --ntasks-per-node=1 torchrun --nnodes=2")
    assert "--rdzv-endpoint=$HEAD:29500 --nproc-per-node=1" in line

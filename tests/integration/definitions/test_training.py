"""Models with tied weights, masks and several inputs train alike on one process and on two."""

import os
import socket
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

import workers.zoo
from backend.codec import to_json
from backend.planning.plan import Partition, Plan, Stage
from backend.runs.job import Job
from backend.runs.request.spec import DataSpec, OptimizerSpec, TrainSpec
from workers.definitions.loader import load
from workers.definitions.prepare import prepare

ROOT = Path(__file__).parents[3]
SMALL = {
    "gpt2": {"tokens": 50, "width": 16, "depth": 2, "heads": 2, "context": 16, "length": 8},
    "bert": {"tokens": 50, "width": 16, "depth": 2, "heads": 2, "context": 16, "length": 8},
    "gnmt": {"width": 8, "tokens": 50, "length": 7},
}
"""Without dropout, whose noise is drawn by stage."""
TIED = {"gpt2": ("wte.weight", "lm_head.weight"), "bert": ("words.weight", "decoder.weight")}


def launch(folder: Path, name: str, bounds: list[int]) -> dict[str, torch.Tensor]:
    """Train over the stages between `bounds`; the weights after two epochs."""
    folder.mkdir()
    stages = tuple(
        Stage(first, stop, (rank,)) for rank, (first, stop) in enumerate(pairwise(bounds))
    )
    spec = TrainSpec(
        definition_id=1,
        plan=Plan("by hand", Partition(stages), "1f1b-flush", microbatch=2, batch=4),
        data=DataSpec("synthetic", 24),
        optimizer=OptimizerSpec("momentum", 0.1),
        epochs=2,
        parameters={**SMALL[name], "dropout": 0.0},
    )
    file = Path(workers.zoo.__file__).parent / f"{name}.py"
    path = folder / "job.json"
    path.write_bytes(to_json(Job, Job(1, 1, name, spec, str(file), str(folder), len(stages))))
    _run(path, len(stages))
    return load_file(folder / "model.safetensors")


def _run(job: Path, size: int) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    ranks = []
    for rank in range(size):
        world = {"RANK": str(rank), "WORLD_SIZE": str(size)}
        world |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
        command = [sys.executable, "-m", "workers.runtime.main", str(job)]
        log = job.with_name(f"log-{rank}").open("w+")
        environment = {**os.environ, **world, "PYTHONPATH": str(ROOT)}
        ranks.append(subprocess.Popen(command, stdout=log, stderr=log, env=environment))
    codes = [process.wait(timeout=240) for process in ranks]
    logs = [job.with_name(f"log-{rank}").read_text()[-2000:] for rank in range(size)]
    assert codes == [0] * size, logs


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(SMALL))
def test_two_processes_end_with_the_weights_of_one(tmp_path: Path, name: str) -> None:
    file = Path(workers.zoo.__file__).parent / f"{name}.py"
    definition = load(file, {**SMALL[name], "dropout": 0.0})
    count = len(prepare(definition, definition.example(2)).layers)
    alone = launch(tmp_path / "one", name, [0, count])
    parted = launch(tmp_path / "two", name, [0, count // 2, count])
    assert alone.keys() == parted.keys()
    initial = definition.model(0).state_dict()
    assert any(not torch.equal(alone[each], initial[each]) for each in alone)
    for each in alone:
        assert torch.allclose(alone[each], parted[each], rtol=1e-5, atol=1e-7), each
    if name in TIED:
        one, other = (parted[each] for each in TIED[name])
        assert torch.equal(one, other)

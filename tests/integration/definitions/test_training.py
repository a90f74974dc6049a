"""Models with tied weights, masks and several inputs train alike on one process and on two."""

from itertools import pairwise
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

import workers.zoo
from backend.codec import to_json
from backend.planning.plan import Partition, Plan, Stage
from backend.runs.job import Job
from backend.runs.request.optimizer_spec import OptimizerSpec
from backend.runs.request.spec import DataSpec, TrainSpec
from tests.contract.launching import launch
from workers.definitions.loader import load
from workers.definitions.prepare import prepare

SMALL = {
    "gpt2": {"tokens": 50, "width": 16, "depth": 2, "heads": 2, "context": 16, "length": 8},
    "bert": {"tokens": 50, "width": 16, "depth": 2, "heads": 2, "context": 16, "length": 8},
    "gnmt": {"width": 8, "tokens": 50, "length": 7},
}
"""Without dropout, whose noise is drawn by stage."""
TIED = {"gpt2": ("wte.weight", "lm_head.weight"), "bert": ("words.weight", "decoder.weight")}


def trained(folder: Path, name: str, bounds: list[int]) -> dict[str, torch.Tensor]:
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
    launch([path], len(stages), "workers.runtime.main")
    return load_file(folder / "model.safetensors")


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(SMALL))
def test_two_processes_end_with_the_weights_of_one(tmp_path: Path, name: str) -> None:
    file = Path(workers.zoo.__file__).parent / f"{name}.py"
    definition = load(file, {**SMALL[name], "dropout": 0.0})
    count = len(prepare(definition, definition.example(2)).layers)
    alone = trained(tmp_path / "one", name, [0, count])
    parted = trained(tmp_path / "two", name, [0, count // 2, count])
    assert alone.keys() == parted.keys()
    initial = definition.model(0).state_dict()
    assert any(not torch.equal(alone[each], initial[each]) for each in alone)
    for each in alone:
        assert torch.allclose(alone[each], parted[each], rtol=1e-5, atol=1e-7), each
    if name in TIED:
        one, other = (parted[each] for each in TIED[name])
        assert torch.equal(one, other)

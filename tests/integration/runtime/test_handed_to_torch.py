"""A plan that left for torch.distributed.pipelining runs there, and gives a plain loop's gradients.

Torch splits the model at the file's points, takes its CSV and runs it on real ranks.
"""

from itertools import pairwise
from pathlib import Path

import pytest
import torch

from backend.cluster.cluster import Cluster, Level
from backend.errors import InvalidInput
from backend.planning.balanced import side_by_side
from backend.planning.plan import Partition, Plan, Stage
from backend.prediction.programs import exported
from backend.prediction.trainers.forms import TRAINERS
from backend.runs.request.spec import ProfileSpec
from tests.contract.launching import launch
from tests.integration.runtime import handed_to_torch
from tests.integration.runtime.handed_to_torch import batch, fresh
from workers.profiler.described import described

MODEL = Path(__file__).parents[2] / "contract/models/residual.py"


def test_torch_runs_the_plan_as_it_is_written(tmp_path: Path):
    profile = described("residual", MODEL, ProfileSpec(0, 2, peak="h100"))
    names = [layer.name for layer in profile.layers]
    straight = side_by_side([names.index("c"), len(names)])
    chunked = four_stages(0, 1, 4, 8, 9)
    plans = {
        "zb-h1": Plan("by-hand", straight, "zb-h1", 2, 4),
        "interleaved": Plan("by-hand", chunked, "interleaved", 2, 4),
    }
    skipping = Plan("by-hand", four_stages(0, 2, 4, 8, 9), "interleaved", 2, 4)
    with pytest.raises(InvalidInput, match="what tanh makes on stage 0 is read by add on stage 2"):
        TRAINERS["torch"].of(profile, skipping)
    for name, plan in plans.items():
        file = tmp_path / f"{name}.py"
        file.write_bytes(exported(profile, Cluster((Level(2, 1e9),)), plan, TRAINERS["torch"]))
        ours = learned(file, tmp_path)
        inputs, targets = batch(8)
        plain = fresh()
        torch.nn.functional.cross_entropy(plain(inputs), targets).backward()
        assert ours.keys() == dict(plain.named_parameters()).keys()
        for weight, parameter in plain.named_parameters():
            torch.testing.assert_close(ours[weight], parameter.grad, rtol=1e-12, atol=1e-14)


def four_stages(*ends: int) -> Partition:
    stages = (Stage(*cut, (number % 2,)) for number, cut in enumerate(pairwise(ends)))
    return Partition(tuple(stages), chunks=2)


def learned(file: Path, folder: Path) -> dict[str, torch.Tensor]:
    """The gradients of all ranks by name."""
    launch([file, folder], 2, handed_to_torch.__name__)
    outs = [folder / f"{rank}.pt" for rank in range(2)]
    return {name: grad for out in outs for name, grad in torch.load(out).items()}

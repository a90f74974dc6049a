"""One rank of a pipeline of torch's own, by a file that Stageflow wrote: what its stages learn.

RANK=0 WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=29500 \
    python -m tests.integration.runtime.handed_to_torch plan.py folder

It is left in folder/RANK.pt.
"""

import importlib.util
import os
import sys

import torch
import torch.distributed as dist
from torch import nn

from tests.contract.models.residual import model


def batch(samples: int) -> tuple[torch.Tensor, torch.Tensor]:
    torch.manual_seed(1)
    return torch.randn(samples, 6, dtype=torch.float64), torch.randint(4, (samples,))


def fresh() -> nn.Module:
    torch.manual_seed(0)
    return model()


def main() -> None:
    torch.set_num_threads(1)
    (file, folder), rank = sys.argv[1:], int(os.environ["RANK"])
    spec = importlib.util.spec_from_file_location("plan", file)
    plan = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(plan)
    dist.init_process_group("gloo")
    assert dist.get_world_size() == len(plan.STAGES)
    inputs, targets = batch(plan.SAMPLES * plan.MICROBATCHES)
    pipe = plan.split(fresh(), (inputs[: plan.SAMPLES],))
    stages = [pipe.build_stage(number, torch.device("cpu")) for number in plan.STAGES[rank]]
    run = plan.schedule(stages, loss_fn=nn.functional.cross_entropy)
    run.step(*((inputs,) if rank == 0 else ()), target=targets)
    gradients = {
        name: weight.grad for stage in stages for name, weight in stage.submod.named_parameters()
    }
    torch.save(gradients, f"{folder}/{rank}.pt")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

"""One rank of a pipeline of torch's own, by a file that Stageflow wrote: what its stages learn.

python -m tests.integration.runtime.handed_to_torch plan.py rank out.pt
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


def main(file: str, rank: int, out: str) -> None:
    spec = importlib.util.spec_from_file_location("plan", file)
    plan = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(plan)
    dist.init_process_group("gloo", rank=rank, world_size=len(plan.STAGES))
    inputs, targets = batch(plan.SAMPLES * plan.MICROBATCHES)
    pipe = plan.split(fresh(), (inputs[: plan.SAMPLES],))
    stages = [pipe.build_stage(number, torch.device("cpu")) for number in plan.STAGES[rank]]
    run = plan.schedule(stages, loss_fn=nn.functional.cross_entropy)
    run.step(*((inputs,) if rank == 0 else ()), target=targets)
    gradients = {
        name: weight.grad for stage in stages for name, weight in stage.submod.named_parameters()
    }
    torch.save(gradients, out)
    dist.destroy_process_group()


if __name__ == "__main__":
    os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
    main(sys.argv[1], int(sys.argv[2]), sys.argv[3])

"""One rank of torch's own pipeline runtime, whose stages lie as a V, by CSV files that Stageflow
wrote: what its stages learn of one batch.

RANK=0 WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=29500 \
    python -m tests.integration.runtime.v_in_torch folder zb-v.csv v-half.csv

It is left in folder/NAME-RANK.pt.
"""

import os
import sys
from pathlib import Path

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.pipelining import PipelineStage
from torch.distributed.pipelining.schedules import _PipelineScheduleRuntime

MICROBATCHES, SAMPLES, STAGES = 4, 2, 4
WIDTHS = (6, 5, 7, 5, 4)


def batch() -> tuple[Tensor, Tensor]:
    torch.manual_seed(1)
    count = MICROBATCHES * SAMPLES
    return torch.randn(count, WIDTHS[0], dtype=torch.float64), torch.randint(WIDTHS[-1], (count,))


def fresh() -> list[nn.Module]:
    """The stages; together they are the model."""
    torch.manual_seed(0)
    return [
        nn.Sequential(nn.Linear(WIDTHS[n], WIDTHS[n + 1]), nn.Tanh()).double()
        for n in range(STAGES)
    ]


def stage(parts: list[nn.Module], number: int) -> PipelineStage:
    given, made = (torch.empty(SAMPLES, WIDTHS[at]).double() for at in (number, number + 1))
    for tensor, is_inner in ((given, number > 0), (made, True)):
        tensor.requires_grad_(is_inner)  # or no gradient is asked for
    return PipelineStage(
        parts[number], number, STAGES, torch.device("cpu"), input_args=given, output_args=made
    )


def main() -> None:
    torch.set_num_threads(1)
    (folder, *files), rank = sys.argv[1:], int(os.environ["RANK"])
    dist.init_process_group("gloo")
    inputs, targets = batch()
    for file in files:
        parts = fresh()
        own = [stage(parts, number) for number in (rank, STAGES - 1 - rank)]
        run = _PipelineScheduleRuntime(own, MICROBATCHES, loss_fn=nn.functional.cross_entropy)
        run._load_csv(file)
        run.step(*((inputs,) if rank == 0 else ()), target=targets)
        gradients = {
            f"{one.stage_index}.{name}": weight.grad
            for one in own
            for name, weight in one.submod.named_parameters()
        }
        torch.save(gradients, f"{folder}/{Path(file).stem}-{rank}.pt")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

"""One of two ranks that somebody trains without Stageflow, traced: a plain loop over gloo.

    RANK=0 WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=29500 python traced_rank.py FOLDER

The second rank waits in its forwards: it is slow.
"""

import os
import sys
import time
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.profiler import ProfilerActivity, profile, record_function

MICROBATCHES, STEPS, SAMPLES, WIDTH = 4, 3, 16, 256
SLEEP = 0.02
"""Seconds that the second rank waits in each forward."""


def main() -> None:
    rank, folder = int(os.environ["RANK"]), Path(sys.argv[1])
    dist.init_process_group("gloo")
    torch.set_num_threads(1)
    torch.manual_seed(rank)
    stage = nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.ReLU(), nn.Linear(WIDTH, WIDTH))
    with profile(activities=[ProfilerActivity.CPU]) as traced:
        for _ in range(STEPS):
            step(rank, stage, SLEEP if rank else 0.0)
    traced.export_chrome_trace(str(folder / f"rank{rank}.json.gz"))
    dist.destroy_process_group()


def step(rank: int, stage: nn.Module, sleep: float) -> None:
    """GPipe: all forwards, then all backwards."""
    held = []
    for number in range(MICROBATCHES):
        inputs = torch.randn(SAMPLES, WIDTH)
        if rank:
            dist.recv(inputs, 0)
            inputs.requires_grad_()
        with record_function(f"forward {number}"):
            outputs = stage(inputs)
            time.sleep(sleep)
            outputs = outputs * 1
        held.append((inputs, outputs))
        if not rank:
            dist.send(outputs.detach(), 1)
    for number, (inputs, outputs) in enumerate(held):
        gradient = torch.ones_like(outputs)
        if not rank:
            dist.recv(gradient, 1)
        with record_function(f"backward {number}"):
            outputs.backward(gradient)
        if rank:
            assert inputs.grad is not None
            dist.send(inputs.grad, 0)


if __name__ == "__main__":
    main()

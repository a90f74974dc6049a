"""A training on two hosts that lasts long enough for something to happen in the middle of it."""

from backend.planning.plan import Partition, Plan, Stage
from backend.runs.request.optimizer_spec import OptimizerSpec
from backend.runs.request.spec import CheckpointSpec, DataSpec, TrainSpec

MODEL = b"""
import time
import torch
from torch import nn

def model():
    return nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Dropout(0.2), nn.Linear(8, 3))

def example(batch):
    torch.manual_seed(3)
    return torch.rand(batch, 6), torch.randint(3, (batch,))

def loss(output, target):
    time.sleep(0.004)
    return nn.functional.cross_entropy(output, target)
"""
"""However fast the machine, an epoch lasts long enough for something to happen in it."""
MICROBATCH, BATCH, UPDATES = 4, 4, 300


def training(hosts) -> TrainSpec:
    """One epoch of `UPDATES` updates, a stage on each of the first two hosts."""
    definition = hosts.backend.definitions.add("slow.py", MODEL)
    per_host = len(hosts.backend.nodes.list()[0].devices)
    stages = (Stage(0, 2, (0,)), Stage(2, 4, (per_host,)))
    return TrainSpec(
        definition.id,
        Plan("even", Partition(stages), "1f1b-flush", MICROBATCH, batch=BATCH),
        data=DataSpec("synthetic", MICROBATCH * BATCH * UPDATES),
        optimizer=OptimizerSpec("adam", 0.003, decay="cosine"),
        epochs=1,
        checkpoints=CheckpointSpec(seconds=0),
        nodes=tuple(hosts.names[:2]),
    )


def curve(hosts, run_id: int) -> list[tuple[int, float]]:
    """Every update's loss."""
    return [(point.step, point.value) for point in hosts.backend.runs.metrics.list(run_id, "loss")]


def newest(hosts, run_id: int) -> int:
    """The step of the newest checkpoint, in the middle of the epoch and with both hosts' files."""
    kept = hosts.backend.runs.checkpoints.list(run_id)[0]
    assert (kept.mark.epoch, len(kept.files)) == (0, 2)
    assert 0 < kept.mark.step < UPDATES
    return kept.mark.step

"""Training as anybody writes it: one process, one model, torch's own optimizer."""

from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from backend.runs.request.spec import TrainSpec
from workers.data.catalog import load as load_data
from workers.definitions.loader import load
from workers.runtime.samples.epoch import Epoch
from workers.runtime.samples.segments import cutting_of


@dataclass
class Plain:
    """The weights at the end, the loss of every update, the updates left out for overflow."""

    weights: dict[str, Tensor]
    losses: list[float]
    skipped: int


def plain(file: Path, spec: TrainSpec, place: str = "") -> Plain:
    """`spec` in one process: batches of its plan's microbatches, a mean over their samples."""
    definition = load(file)
    data, cutting = load_data(spec.data, definition, place), cutting_of(spec)
    model = definition.model(spec.seed).train()
    rule, rate = spec.optimizer, spec.optimizer.learning_rate
    optimizer = torch.optim.SGD(model.parameters(), rate, rule.momentum)
    scaler = torch.amp.GradScaler("cpu", enabled=spec.precision == "float16")
    found = Plain({}, [], 0)
    for number in range(spec.epochs):
        epoch = Epoch.shuffled(data.train, cutting, spec.seed, number)
        for first in range(0, len(epoch.groups), spec.plan.batch):
            batch = range(first, first + spec.plan.batch)
            total = sum(map(epoch.share, batch))
            optimizer.zero_grad()
            loss = 0.0
            for k in batch:
                with _cast(spec):
                    own = definition.loss(model(epoch.inputs(k)), epoch.targets(k))
                scaler.scale(own * epoch.share(k)).backward()
                loss += float(own.detach()) * epoch.share(k) / total
            before = scaler.get_scale()
            scaler.unscale_(optimizer)
            for weight in model.parameters():
                weight.grad /= total
            scaler.step(optimizer)
            scaler.update()
            found.skipped += scaler.get_scale() < before
            found.losses.append(loss)
    found.weights = {name: weight.detach() for name, weight in model.state_dict().items()}
    return found


def _cast(spec: TrainSpec) -> torch.autocast:
    wide = spec.precision == "float32"
    kind = torch.bfloat16 if wide else getattr(torch, spec.precision)
    return torch.autocast("cpu", dtype=kind, enabled=not wide)


def distance(one: dict[str, Tensor], other: dict[str, Tensor]) -> float:
    """The largest difference, of tensors of the same names."""
    assert one.keys() == other.keys()
    return max(float((one[name].float() - other[name].float()).abs().max()) for name in one)

"""Training as anybody writes it: one process, one model, torch's own optimizer."""

from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn

from backend.runs.request.spec import TrainSpec
from workers.data.catalog import load as load_data
from workers.definitions.loader import load
from workers.definitions.module_state.untouched import untouched
from workers.definitions.samples import positional, tensors
from workers.runtime.compute.random_numbers import forward_seed
from workers.runtime.samples.epoch import Epoch
from workers.runtime.samples.segments import cutting_of


@dataclass
class Plain:
    """The weights at the end, the loss of every update, the updates left out for overflow."""

    weights: dict[str, Tensor]
    losses: list[float]
    skipped: int


def plain(
    file: Path, spec: TrainSpec, place: str = "", forgets: bool = False, tokenizer: str = ""
) -> Plain:
    """`spec` in one process: batches of its plan's microbatches, a mean over their samples.

    A microbatch's random numbers begin as those of a run's first stage do, and the held-out samples
    pass through the model after every epoch. Where it `forgets`, every forward in training meets
    the state that the factory made: the negative control.
    """
    definition = load(file, spec.parameters)
    data, cutting = load_data(spec.data, definition, place, tokenizer), cutting_of(spec)
    first = Epoch.shuffled(data.train, cutting, spec.seed, 0).inputs(0)
    model = positional(definition.model(spec.seed), first).train()
    rule, rate = spec.optimizer, spec.optimizer.learning_rate
    trained = [weight for weight in model.parameters() if weight.requires_grad]
    optimizer = torch.optim.SGD(trained, rate, rule.momentum)
    scaler = torch.amp.GradScaler("cpu", enabled=spec.precision == "float16")
    found = Plain({}, [], 0)
    for number in range(spec.epochs):
        epoch = Epoch.shuffled(data.train, cutting, spec.seed, number)
        for first in range(0, len(epoch.groups), spec.plan.batch):
            batch = range(first, first + spec.plan.batch)
            total = sum(map(epoch.share, batch))
            optimizer.zero_grad(set_to_none=False)  # momentum goes on where no sample arrives
            loss = 0.0
            for k in batch:
                torch.manual_seed(forward_seed(spec.seed, number, 0, k))
                with untouched(model) if forgets else nullcontext(), _cast(spec):
                    own = definition.loss(model(*tensors(epoch.inputs(k))), epoch.targets(k))
                scaler.scale(own * epoch.share(k)).backward()
                loss += float(own.detach()) * epoch.share(k)
            before = scaler.get_scale()
            scaler.unscale_(optimizer)
            for weight in trained:
                if weight.grad is not None:
                    weight.grad /= total
            scaler.step(optimizer)
            scaler.update()
            found.skipped += scaler.get_scale() < before
            found.losses.append(loss / total)
        if data.held_out is not None:
            _evaluate(model, Epoch.in_order(data.held_out, cutting))
    found.weights = {name: weight.detach() for name, weight in model.state_dict().items()}
    return found


def _evaluate(model: nn.Module, epoch: Epoch) -> None:
    model.eval()
    with torch.no_grad():
        for k in range(len(epoch.groups)):
            model(*tensors(epoch.inputs(k)))
    model.train()


def _cast(spec: TrainSpec) -> torch.autocast:
    wide = spec.precision == "float32"
    kind = torch.bfloat16 if wide else getattr(torch, spec.precision)
    return torch.autocast("cpu", dtype=kind, enabled=not wide)


def distance(one: dict[str, Tensor], other: dict[str, Tensor]) -> float:
    """The largest difference, of tensors of the same names."""
    assert one.keys() == other.keys()
    return max(float((one[name].float() - other[name].float()).abs().max()) for name in one)

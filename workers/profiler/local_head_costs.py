"""What the heads of local losses cost behind each layer: timed as stages that hand on what they are
given."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace

import torch
from torch import Tensor, nn

from backend.errors import InvalidInput
from backend.profiles.local_head_cost import LocalHeadCost
from backend.runs.request.local_heads import LOCAL_HEADS
from workers.definitions.definition import Loss
from workers.definitions.layers import LayeredModel
from workers.definitions.samples import Batch, Samples, mapped, tensors
from workers.definitions.tracing.record import TensorSpec
from workers.profiler.measure import Bench, LayerTimes, ModelTimes, do_nothing, repeated, usual
from workers.profiler.room import COPIES
from workers.profiler.sizes import flops, saved_bytes, work_bytes
from workers.runtime.compute.local_heads.local_loss import LocalLosses
from workers.runtime.compute.stage import Precision, StageModule, Tensors
from workers.runtime.process import free
from workers.runtime.state.optimizers import Momentum

META = torch.device("meta")
MOST_REPETITIONS = 5
"""A head is a small part of its stage."""
MOST_OPERATIONS = 2.0
"""Those of all heads of a kind that are measured where it is not the usual one, over the model's:
so that a profile does not take many times as long."""
Specs = tuple[TensorSpec, ...]


def local_head_costs(
    layered: LayeredModel,
    batch: Batch,
    loss: Loss,
    repetitions: int,
    precision: Precision,
    operations: float,
) -> tuple[tuple[LocalHeadCost, ...], ...]:
    """Per layer the heads that can read what crosses the cut behind it, the usual one first.
    `operations` are those of a forward of the model. A head for which there is no room, or whose
    loss raises, is left out."""
    device = tensors(batch[0])[0].device
    behind = defaultdict[Specs, list[int]](list)
    for index in range(len(layered.layers) - 1):
        behind[tuple(layered.specs[index + 1])].append(index)
    found: list[list[LocalHeadCost]] = [[] for _ in layered.layers]
    count = min(repetitions, MOST_REPETITIONS)
    nothing = do_nothing(device, count) if behind else LayerTimes()
    for number, losses in enumerate(_kinds(layered.num_scores, batch[1], device)):
        heads = {specs: _sketched(losses, specs, loss, batch[1]) for specs in behind}
        known = {specs: head for specs, head in heads.items() if head}
        if number and sum(head.flops for head in known.values()) > MOST_OPERATIONS * operations:
            continue
        for specs, sketch in known.items():
            if COPIES * sketch.parameter_bytes > free(device):
                continue
            bench = _bench(losses, specs, loss, precision)
            head = _measured(bench, specs, batch[1], count, nothing, sketch)
            for index in behind[specs]:
                found[index].append(head)
    return tuple(map(tuple, found))


def _kinds(scores: int | None, answers: Samples, device: torch.device) -> Iterator[LocalLosses]:
    """Of all heads that could judge by these answers, the usual one first."""
    seen: set[str] = set()
    for name in ("", *LOCAL_HEADS):
        try:
            losses = LocalLosses.judging(answers, scores, name, 0, device)
        except InvalidInput:
            continue
        if losses.name not in seen:
            seen.add(losses.name)
            yield losses


class _HandingOn(nn.Module):
    """A stage that has a head and nothing else."""

    def __init__(self, head: nn.Module) -> None:
        super().__init__()
        self.head = head

    def forward(self, *bundle: Tensor) -> Tensors:
        return bundle


def _bench(losses: LocalLosses, specs: Specs, loss: Loss, precision: Precision) -> Bench:
    """Raises `InvalidInput` where no head can read a bundle of `specs`."""
    own = losses.made(0, specs, loss)
    stage = StageModule(_HandingOn(own.head).train(), specs, own, precision)
    weights = {name: weight.clone().requires_grad_() for name, weight in stage.weights.items()}
    return Bench(stage, weights, Momentum(learning_rate=1e-4, momentum=0.9), LayerTimes())


def _sketched(
    losses: LocalLosses, specs: Specs, loss: Loss, answers: Samples
) -> LocalHeadCost | None:
    """The sizes of a head, from shapes alone; None where there can be none."""
    there = mapped(answers, lambda tensor: tensor.to(META))
    try:
        bench = _bench(replace(losses, device=META), specs, loss, "float32")
        [operations] = flops([bench], _bundle(specs, META), there)
    except Exception:  # the loss is the user's, and shapes have no values
        return None
    num_bytes = sum(weight.nbytes for weight in bench.weights.values())
    return LocalHeadCost(losses.name, 0.0, num_bytes, flops=operations)


def _measured(
    bench: Bench,
    specs: Specs,
    answers: Samples,
    repetitions: int,
    nothing: LayerTimes,
    sketch: LocalHeadCost,
) -> LocalHeadCost:
    bundle = _bundle(specs, next(iter(bench.weights.values())).device)
    repeated(bench, bundle, answers, repetitions)
    forward, backward, update = ModelTimes([], bench.times, nothing).seconds(bench.times)
    [kept], [work] = (size([bench], bundle, answers) for size in (saved_bytes, work_bytes))
    return replace(
        sketch,
        seconds=forward + backward,
        work_bytes=kept + work,
        update=update,
        adding=usual(bench.times.adding),
        out_of_place_update=usual(bench.times.out_of_place_update),
    )


def _bundle(specs: Sequence[TensorSpec], device: torch.device) -> Tensors:
    """Tensors of no meaning."""
    return tuple(
        torch.randn(spec.shape, device=device).to(spec.dtype)
        if spec.dtype.is_floating_point
        else torch.zeros(spec.shape, dtype=spec.dtype, device=device)
        for spec in specs
    )

"""Times every layer of a model, forward, backward and update, in the order of training.

One repetition runs all layers forward, then all backward with the gradients that really
come back, then all updates, then the whole model beside it. So each layer meets the caches
and the numbers that it meets in training, and noise falls on all layers alike. What a stage
costs that does nothing is measured too and taken off, or layers of a few microseconds would
add up to more than the model.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from statistics import fmean, median

import torch
from torch import Tensor, nn

from workers.definitions.cut import cut
from workers.definitions.layers import LayeredModel
from workers.definitions.loader import Batch, Loss
from workers.definitions.module_state.untouched import untouched
from workers.definitions.samples import Samples, tensors
from workers.definitions.tracing.record import TensorSpec
from workers.profiler.layer_timer import layer_timer
from workers.runtime.compute.stage import Activations, Precision, StageModule, Tensors
from workers.runtime.state.optimizers import Momentum, Optimizer

WARM_UP = 3
"""Repetitions that are not counted: allocator, caches, lazily built kernels."""


RARE_EVERY = 4
"""What most schedules do not do is timed in every fourth repetition: backwards in halves, the sums
of several gradients, updates that leave the old weights standing."""


@dataclass(slots=True)
class LayerTimes:
    """Seconds of one layer, one entry per repetition; none of a backward that has nothing to do."""

    forward: list[float] = field(default_factory=list)
    backward: list[float] = field(default_factory=list)
    update: list[float] = field(default_factory=list)
    backward_input: list[float] = field(default_factory=list)
    backward_weight: list[float] = field(default_factory=list)
    adding: list[float] = field(default_factory=list)
    out_of_place_update: list[float] = field(default_factory=list)

    @property
    def rare(self) -> tuple[list[float], ...]:
        return self.backward_input, self.backward_weight, self.adding, self.out_of_place_update

    @property
    def all(self) -> tuple[list[float], ...]:
        return self.forward, self.backward, self.update, *self.rare

    def add(self, other: "LayerTimes") -> None:
        """Take in what was measured of an equal layer."""
        for seconds, more in zip(self.all, other.all, strict=True):
            seconds += more

    def clear(self) -> None:
        for seconds in self.all:
            seconds.clear()


@dataclass(slots=True)
class Bench:
    """A stage with its update rule and what was measured of it."""

    stage: StageModule
    weights: dict[str, Tensor]
    rule: Optimizer
    times: LayerTimes


@dataclass(frozen=True, slots=True)
class ModelTimes:
    """The times so far of every layer, of the whole model, and of a stage that does nothing."""

    layers: list[LayerTimes]
    whole: LayerTimes
    nothing: LayerTimes

    def seconds(self, times: LayerTimes) -> tuple[float, float, float]:
        """Means of (forward, backward, update), less what a stage costs that does nothing."""
        forward = _net(times.forward, self.nothing.forward)
        return forward, _net(times.backward, self.nothing.backward), usual(times.update)

    def backward_input(self, times: LayerTimes) -> float:
        """Mean seconds of the input's half of the backward, at most the whole one; 0.0 where
        it was not measured apart."""
        taken = _net(times.backward_input, self.nothing.backward_input)
        return min(taken, self.seconds(times)[1])

    def backward_weight(self, times: LayerTimes) -> float:
        """Mean seconds of the other half, run by itself; 0.0 likewise."""
        return _net(times.backward_weight, self.nothing.backward_weight)


def _net(seconds: list[float], nothing: list[float]) -> float:
    """The mean beyond that of a stage that does nothing, not below 0; 0.0 of none."""
    return max(0.0, usual(seconds) - usual(nothing)) if seconds else 0.0


def usual(seconds: list[float]) -> float:
    """The mean, for a run of many adds up to it, of what took at most twice the median; 0.0 of
    none."""
    return fmean(s for s in seconds if s <= 2 * median(seconds)) if seconds else 0.0


def benches(
    layered: LayeredModel, loss: Loss, precision: Precision = "float32"
) -> tuple[list[Bench], Bench]:
    """(one per layer, the whole model)."""
    count = len(layered.layers)
    layers = [bench_of(layered, i, i + 1, loss, precision) for i in range(count)]
    return layers, bench_of(layered, 0, count, loss, precision)


def measure(
    layered: LayeredModel,
    batch: Batch,
    loss: Loss,
    repetitions: int,
    precision: Precision = "float32",
) -> Iterator[ModelTimes]:
    """What is known after each repetition, those of the warm-up included.

    The last layer's times include the loss. Times are cleared when the warm-up is over.
    """
    layers, whole = benches(layered, loss, precision)
    inputs, targets = tensors(batch[0]), batch[1]
    nothings, zero = _nothings(len(layers)), (torch.zeros(1, device=inputs[0].device),)
    measured = ModelTimes([bench.times for bench in layers], whole.times, nothings[0].times)
    for repetition in range(WARM_UP + repetitions):
        if repetition == WARM_UP:
            for bench in (*layers, whole, nothings[0]):
                bench.times.clear()
        with untouched(layered.model):
            for chain, given in ((layers, inputs), ([whole], inputs), (nothings, zero)):
                sweep(chain, given, targets)
            if repetition % RARE_EVERY == 0 or repetition == WARM_UP:
                for chain, given in ((layers, inputs), (nothings, zero)):
                    sweep(chain, given, targets, halves=True)
        yield measured


def repeated(bench: Bench, inputs: Tensors, targets: Samples, repetitions: int) -> None:
    """Time one stage by itself, with gradients of no meaning where it has no loss; its module is
    as before."""
    for repetition in range(WARM_UP + repetitions):
        if repetition == WARM_UP:
            bench.times.clear()
        with untouched(bench.stage.module):
            sweep([bench], inputs, targets)
            if repetition % RARE_EVERY == 0 or repetition == WARM_UP:
                sweep([bench], inputs, targets, halves=True)


def do_nothing(device: torch.device, repetitions: int) -> LayerTimes:
    """The times of a stage that does nothing."""
    (bench,) = _nothings(1)
    zero = torch.zeros(1, device=device)
    repeated(bench, (zero,), zero, repetitions)
    return bench.times


def bench_of(
    layered: LayeredModel, first: int, stop: int, loss: Loss, precision: Precision
) -> Bench:
    """A stage of the layers `first` up to, not including, `stop`, with weights of its own."""
    return bench_for(layered, cut(layered, first, stop), first, stop, loss, precision)


def bench_for(
    layered: LayeredModel,
    module: nn.Module,
    first: int,
    stop: int,
    loss: Loss,
    precision: Precision,
) -> Bench:
    """As `bench_of`, for a module that has been cut already."""
    is_last = stop == len(layered.layers)
    stage = StageModule(module.train(), layered.specs[first], loss if is_last else None, precision)
    weights = {name: w.clone().requires_grad_() for name, w in stage.weights.items()}
    return Bench(stage, weights, Momentum(learning_rate=1e-4, momentum=0.9), LayerTimes())


def _nothings(count: int) -> list[Bench]:
    """A chain of stages that do nothing, as long as the model, sharing their times."""
    spec, times = TensorSpec((1,), torch.float32, requires_grad=True), LayerTimes()
    stages = (
        StageModule(_Nothing(), (spec,), _first if number == count - 1 else None)
        for number in range(count)
    )
    return [Bench(stage, {}, Momentum(0.0, 0.0), times) for stage in stages]


class _Nothing(nn.Module):
    def forward(self, bundle: Tensor) -> Tensors:
        return (bundle,)


def _first(output: Tensors, target: Samples) -> Tensor:
    return output[0]


def sweep(benches: list[Bench], inputs: Tensors, targets: Samples, halves: bool = False) -> None:
    """Forward, backward and update of a chain; `halves`: what is rare instead, with the backward
    in its halves, and the forward unmeasured."""
    held: list[Activations] = []
    bundle, watch = tuple(tensor.clone() for tensor in inputs), layer_timer(inputs[0].device)
    for bench in benches:
        work = partial(bench.stage.forward, bundle, bench.weights, targets)
        bundle, kept = watch.timed([] if halves else bench.times.forward, work)
        held.append(kept)
        bundle = tuple(tensor.detach() for tensor in bundle)
    gradients = () if benches[-1].stage.loss else some_gradients(held[-1].outputs)
    of_weights: list[dict[str, Tensor]] = []
    for bench, kept in zip(reversed(benches), reversed(held), strict=True):
        times = bench.times if kept.outputs else LayerTimes()  # without a gradient there is none
        if halves:
            first = partial(bench.stage.backward_input, kept, gradients)
            gradients = watch.timed(times.backward_input, first)
            second = partial(bench.stage.backward_weight, kept)
            found = watch.timed(times.backward_weight, second)
        else:
            both = partial(bench.stage.backward, kept, gradients)
            gradients, found = watch.timed(times.backward, both)
        of_weights.append(found)
    for bench, found in zip(reversed(benches), of_weights, strict=True):
        if halves:
            watch.timed(bench.times.adding, _add(bench, found))
            watch.timed(bench.times.out_of_place_update, _update(bench, found, in_place=False))
        else:
            watch.timed(bench.times.update, _update(bench, found, in_place=True))
    watch.finish()


def some_gradients(outputs: Tensors) -> Tensors:
    """Gradients as they may come back: small, of either sign."""
    return tuple(1e-3 * torch.randn_like(output) for output in outputs)


def _add(bench: Bench, gradients: dict[str, Tensor]) -> Callable[[], object]:
    """Adds to what stands for the sum of other microbatches."""
    sums, new = [g.clone() for g in gradients.values()], list(gradients.values())
    return lambda: torch._foreach_add_(sums, new) if new else None


def _update(bench: Bench, gradients: dict[str, Tensor], in_place: bool) -> Callable[[], object]:
    def update() -> None:
        weights = list(bench.weights.values())
        if weights:
            with torch.no_grad():
                bench.rule.update(weights, list(gradients.values()), in_place)

    return update

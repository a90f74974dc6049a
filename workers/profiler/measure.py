"""Times every layer of a model, forward, backward and update, in the order of training.

One repetition runs all layers forward, then all backward with the gradients that really
come back, then all updates, then the whole model beside it. So each layer meets the caches
and the numbers that it meets in training, and noise falls on all layers alike. What a stage
costs that does nothing is measured too and taken off, or layers of a few microseconds would
add up to more than the model.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from statistics import median
from time import perf_counter
from typing import TypeVar

import torch
from torch import Tensor, nn

from workers.definitions.cut import cut
from workers.definitions.layers import LayeredModel
from workers.definitions.loader import Batch, Loss
from workers.definitions.record import TensorSpec
from workers.definitions.samples import Samples, tensors
from workers.definitions.trace import untouched
from workers.runtime.optimizers import Momentum, Rule
from workers.runtime.stage import Held, Stage, Tensors

WARM_UP = 3
"""Repetitions that are not counted: allocator, caches, lazily built kernels."""

T = TypeVar("T")


@dataclass(slots=True)
class Times:
    """Seconds of one layer, one entry per repetition."""

    forward: list[float] = field(default_factory=list)
    backward: list[float] = field(default_factory=list)
    update: list[float] = field(default_factory=list)

    def clear(self) -> None:
        for seconds in (self.forward, self.backward, self.update):
            seconds.clear()


@dataclass(slots=True)
class _Bench:
    """A stage with its update rule and what was measured of it."""

    stage: Stage
    weights: dict[str, Tensor]
    rule: Rule
    times: Times


@dataclass(frozen=True, slots=True)
class Measured:
    """The times so far of every layer, of the whole model, and of a stage that does nothing."""

    layers: list[Times]
    whole: Times
    nothing: Times

    def seconds(self, times: Times) -> tuple[float, float, float]:
        """Medians of (forward, backward, update), less what a stage costs that does nothing."""
        forward = median(times.forward) - median(self.nothing.forward)
        backward = median(times.backward) - median(self.nothing.backward)
        return max(0.0, forward), max(0.0, backward), median(times.update)


def measure(
    layered: LayeredModel, batch: Batch, loss: Loss, repetitions: int
) -> Iterator[Measured]:
    """What is known after each repetition, those of the warm-up included.

    The last layer's times include the loss. Times are cleared when the warm-up is over.
    """
    count = len(layered.layers)
    layers = [_bench(layered, i, i + 1, loss) for i in range(count)]
    whole = _bench(layered, 0, count, loss)
    inputs, targets = tensors(batch[0]), batch[1]
    nothings = _nothings(count)
    measured = Measured([bench.times for bench in layers], whole.times, nothings[0].times)
    for repetition in range(WARM_UP + repetitions):
        if repetition == WARM_UP:
            for bench in (*layers, whole, nothings[0]):
                bench.times.clear()
        with untouched(layered.model):
            _sweep(layers, inputs, targets)
            _sweep([whole], inputs, targets)
            _sweep(nothings, (torch.zeros(1, device=inputs[0].device),), targets)
        yield measured


def _bench(layered: LayeredModel, first: int, stop: int, loss: Loss) -> _Bench:
    is_last = stop == len(layered.layers)
    module = cut(layered, first, stop).train()
    stage = Stage(module, layered.specs[first], loss if is_last else None)
    weights = {name: w.clone().requires_grad_() for name, w in stage.weights.items()}
    return _Bench(stage, weights, Momentum(learning_rate=1e-4, momentum=0.9), Times())


def _nothings(count: int) -> list[_Bench]:
    """A chain of stages that do nothing, as long as the model, sharing their times."""
    spec, times = TensorSpec((1,), torch.float32, requires_grad=True), Times()
    stages = (
        Stage(_Nothing(), (spec,), _first if number == count - 1 else None)
        for number in range(count)
    )
    return [_Bench(stage, {}, Momentum(0.0, 0.0), times) for stage in stages]


class _Nothing(nn.Module):
    def forward(self, bundle: Tensor) -> Tensors:
        return (bundle,)


def _first(output: Tensors, target: Samples) -> Tensor:
    return output[0]


def _sweep(benches: list[_Bench], inputs: Tensors, targets: Samples) -> None:
    held: list[Held] = []
    bundle, device = tuple(tensor.clone() for tensor in inputs), inputs[0].device
    for bench in benches:
        (bundle, kept), seconds = _timed(device, _forward(bench, bundle, targets))
        held.append(kept)
        bundle = tuple(tensor.detach() for tensor in bundle)
        bench.times.forward.append(seconds)
    gradients: Tensors = ()
    of_weights: list[dict[str, Tensor]] = []
    for bench, kept in zip(reversed(benches), reversed(held), strict=True):
        (gradients, found), seconds = _timed(device, _backward(bench, kept, gradients))
        of_weights.append(found)
        bench.times.backward.append(seconds)
    for bench, found in zip(reversed(benches), of_weights, strict=True):
        bench.times.update.append(_timed(device, _update(bench, found))[1])


def _forward(
    bench: _Bench, bundle: Tensors, targets: Samples
) -> Callable[[], tuple[Tensors, Held]]:
    return lambda: bench.stage.forward(bundle, bench.weights, targets)


def _backward(
    bench: _Bench, held: Held, gradients: Tensors
) -> Callable[[], tuple[Tensors, dict[str, Tensor]]]:
    return lambda: bench.stage.backward(held, gradients)


def _update(bench: _Bench, gradients: dict[str, Tensor]) -> Callable[[], object]:
    def update() -> None:
        weights = list(bench.weights.values())
        if weights:
            with torch.no_grad():
                bench.rule.update(weights, list(gradients.values()), in_place=True)

    return update


def _timed(device: torch.device, work: Callable[[], T]) -> tuple[T, float]:
    """The result and the seconds; a GPU is waited for on both sides."""
    _synchronize(device)
    start = perf_counter()
    result = work()
    _synchronize(device)
    return result, perf_counter() - start


def _synchronize(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)

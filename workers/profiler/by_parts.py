"""Times of a model's layers where the whole is not made: each layer by itself, equal ones once.

A layer gets its first values, is run and timed as in a chain of its own, and is a shape again
before the next. Layers that do the same (`equal_layers`) are measured a few times and stand for
the others.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median

from torch import Tensor, fx

from backend.runs.request.spec import ProfileSpec
from workers.definitions.cut import cut
from workers.definitions.equal_layers import equal_layers
from workers.definitions.layers import LayeredModel
from workers.definitions.loader import Batch, Loss
from workers.definitions.module_state.untouched import untouched
from workers.definitions.samples import Samples, tensors
from workers.profiler.measure import LayerTimes, ModelTimes, bench_for, do_nothing, repeated
from workers.profiler.sizes import deferred_bytes, work_bytes
from workers.runtime.compute.stage import Tensors

MEASURED = 3
"""Of equal layers so many are measured."""

Progressed = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class PartTimes:
    """times   per layer; equal layers have the times of all that were measured of them
    spreads    per layer half the range of the measured layers' seconds over their median; None
               where it is the only one
    work       per layer `Layer.work_bytes`, of the first of its equals; `deferred` likewise
    measured   how many layers were measured
    """

    times: ModelTimes
    spreads: tuple[float | None, ...]
    work: tuple[int, ...]
    deferred: tuple[int, ...]
    measured: int


def measured_by_parts(
    layered: LayeredModel,
    batch: Batch,
    loss: Loss,
    spec: ProfileSpec,
    progress: Progressed,
) -> PartTimes:
    """The times of a model of shapes; `progress` is told how many layers are done, of how many.
    At no time more than one layer has values."""
    equal = equal_layers(layered)
    found: dict[int, list[LayerTimes]] = {first: [] for first in equal}
    made: dict[int, Tensors] = {}
    sizes: dict[int, tuple[int, int]] = {}
    bundle = tensors(batch[0])
    for number, first in enumerate(equal):
        if len(found[first]) < MEASURED:
            part = _part(layered, number, (bundle, batch[1]), loss, spec)
            times, made[first], sizes[first] = part
            found[first].append(times)
        bundle = _behind(layered, number, bundle, made[first])
        progress(number + 1, len(equal))
    pooled = {first: _pooled(parts) for first, parts in found.items()}
    nothing = do_nothing(tensors(batch[0])[0].device, spec.repetitions)
    of_model = ModelTimes([pooled[first] for first in equal], LayerTimes(), nothing)
    counts = [equal.count(first) for first in equal]
    spreads = [
        _spread(found[first]) if count > 1 else None
        for first, count in zip(equal, counts, strict=True)
    ]
    works, deferred = zip(*(sizes[first] for first in equal), strict=True)
    return PartTimes(of_model, tuple(spreads), works, deferred, sum(map(len, found.values())))


def _part(
    layered: LayeredModel,
    number: int,
    batch: tuple[Tensors, Samples],
    loss: Loss,
    spec: ProfileSpec,
) -> tuple[LayerTimes, Tensors, tuple[int, int]]:
    """The layer's times, the bundle that it hands on, and the bytes it has at work and defers."""
    assert layered.blueprint is not None, "the model has values already"
    bundle, targets = batch
    module = cut(layered, number, number + 1)
    with layered.blueprint.filled(module):
        bench = bench_for(layered, module, number, number + 1, loss, spec.precision)
        given = tuple(tensor.clone() for tensor in bundle)
        made, _ = bench.stage.forward(given, bench.weights, targets)
        made = tuple(tensor.detach().clone() for tensor in made)
        repeated(bench, bundle, targets, spec.repetitions)
        with untouched(module):
            (work,) = work_bytes([bench], bundle, targets)
            (deferred,) = deferred_bytes([bench], bundle, targets)
    return bench.times, made, (work, deferred)


def _behind(layered: LayeredModel, number: int, bundle: Tensors, made: Tensors) -> Tensors:
    """The bundle behind a layer, where `made` is that of an equal layer: what the layer only
    passes on is what came in."""
    if number + 1 == len(layered.layers) or layered.graph is None:
        return made
    came: dict[fx.Node, Tensor] = dict(zip(layered.bundles[number], bundle, strict=True))
    behind = zip(layered.bundles[number + 1], made, strict=True)
    return tuple(came.get(node, tensor) for node, tensor in behind)


def _pooled(parts: Sequence[LayerTimes]) -> LayerTimes:
    pooled = LayerTimes()
    for part in parts:
        pooled.add(part)
    return pooled


def _spread(parts: Sequence[LayerTimes]) -> float | None:
    seconds = [median(part.forward) + median(part.backward) for part in parts]
    middle = median(seconds)
    return (max(seconds) - min(seconds)) / 2 / middle if middle else None

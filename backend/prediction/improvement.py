"""Plans that differ little from one another: what a search tries once it has its best candidates.

Candidates come from a cost model in which all-reduces overlap with compute and links carry one
direction at a time. The simulator knows better: a layer may want to move over a border, a device
to another stage or out of use, two stages to be one, or one to be two.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import chain, combinations, pairwise, product

from backend.cluster.cluster import Cluster
from backend.planning.plan import Partition, Plan, Stage
from backend.prediction.device_moves import FEW_DEVICES, StageDevices, in_turn, moved_devices
from backend.profiles.profile import Profile

FEW_LAYERS = 8
"""Layers of a stage that is split behind each of them; a longer one is split in its middle."""
ANY_LAYERS = 5
"""Layers of a stage of which any may come first that wait for none behind them."""
Layers = tuple[int, ...]
Edges = tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class Part:
    """A stage by its layers, numbered as the profile has them, and its devices."""

    layers: tuple[int, ...]
    devices: tuple[int, ...]


Parts = tuple[Part, ...]


def nearby(plan: Plan, profile: Profile, cluster: Cluster) -> Iterator[Plan]:
    """`plan` with one layer in a neighbouring stage, one device in another one, out of use or
    newly in use, two layers or two devices exchanged, all stages copied on idle devices, two stages
    joined or cut anew, or one split; with the replicas of each stage also in the machines in turn.
    None where stages share devices."""
    partition = plan.partition
    if partition.chunks > 1 or plan.num_pipelines > 1:
        return
    order = partition.order or tuple(range(len(profile.layers)))
    parts = tuple(Part(order[s.first : s.stop], s.devices) for s in partition.stages)
    seen = {partition}
    for changed in (parts, *_changed(parts, profile, cluster)):
        turned = _in_turn(changed, cluster)
        for each in (changed,) if turned == changed else (changed, turned):
            other = _partition(each)
            if other in seen:
                continue
            seen.add(other)
            yield replace(plan, partition=other)


def _in_turn(parts: Parts, cluster: Cluster) -> Parts:
    """The replicas of each stage in the machines in turn, so that stages with as many in each hand
    microbatches on inside of them."""
    return tuple(
        Part(part.layers, in_turn(part.devices, cluster)) if len(part.devices) > 1 else part
        for part in parts
    )


def _changed(parts: Parts, profile: Profile, cluster: Cluster) -> Iterator[Parts]:
    yield from _moved_layers(parts, profile.graph.edges)
    for devices in moved_devices(tuple(part.devices for part in parts), cluster):
        yield tuple(Part(p.layers, d) for p, d in zip(parts, devices, strict=True))
    yield from _exchanged_layers(parts, profile.graph.edges)
    yield from _joined(parts)
    places = StageDevices(tuple(part.devices for part in parts), cluster)
    yield from _split(parts, places, profile.graph.edges)
    yield from _cut_anew(parts, places, profile.graph.edges)


def _partition(parts: Parts) -> Partition:
    """Each stage's layers in the profile's order."""
    order = tuple(layer for part in parts for layer in sorted(part.layers))
    stages, first = [], 0
    for part in parts:
        stages.append(Stage(first, first + len(part.layers), part.devices))
        first += len(part.layers)
    return Partition(tuple(stages), () if order == tuple(range(first)) else order)


def _moved_layers(parts: Parts, edges: Edges) -> Iterator[Parts]:
    """One layer a stage further, which nothing behind it in its own reads, or one back."""
    read, reads = _inside(parts, edges)
    for number, (one, other) in enumerate(pairwise(parts)):
        rest = parts[:number], parts[number + 2 :]
        if len(one.layers) > 1:
            for layer in (each for each in one.layers if each not in read):
                yield _with_pair(rest, _without(one, layer), _with(other, layer))
        if len(other.layers) > 1:
            for layer in (each for each in other.layers if each not in reads):
                yield _with_pair(rest, _with(one, layer), _without(other, layer))


def _exchanged_layers(parts: Parts, edges: Edges) -> Iterator[Parts]:
    """A layer a stage further, and one of that in its place."""
    read, reads = _inside(parts, edges)
    for number, (one, other) in enumerate(pairwise(parts)):
        if max(len(one.layers), len(other.layers)) > FEW_LAYERS:
            continue
        rest = parts[:number], parts[number + 2 :]
        for there, back in product(one.layers, other.layers):
            if there not in read and back not in reads and (there, back) not in edges:
                yield _with_pair(
                    rest, _with(_without(one, there), back), _with(_without(other, back), there)
                )


def _inside(parts: Parts, edges: Edges) -> tuple[set[int], set[int]]:
    """Layers that some other of their stage reads, and those that read one."""
    stage_of = {layer: number for number, part in enumerate(parts) for layer in part.layers}
    inside = [(a, b) for a, b in edges if stage_of[a] == stage_of[b]]
    return {a for a, _ in inside}, {b for _, b in inside}


def _with_pair(rest: tuple[Parts, Parts], one: Part, other: Part) -> Parts:
    return (*rest[0], one, other, *rest[1])


def _with(part: Part, layer: int) -> Part:
    return Part((*part.layers, layer), part.devices)


def _without(part: Part, layer: int) -> Part:
    return Part(tuple(each for each in part.layers if each != layer), part.devices)


def _joined(parts: Parts) -> Iterator[Parts]:
    """Two neighbouring stages as one, on all of their devices or on those of one of them."""
    for number, (one, other) in enumerate(pairwise(parts)):
        both = tuple(sorted(one.devices + other.devices))
        for devices in (both, one.devices, other.devices):
            part = Part(one.layers + other.layers, devices)
            yield (*parts[:number], part, *parts[number + 2 :])


def _split(parts: Parts, places: StageDevices, edges: Edges) -> Iterator[Parts]:
    """A stage as two: its devices are divided, or an idle one takes a half."""
    for number, part in enumerate(parts):
        for (one, other), (here, there) in product(_cuts(part, edges), places.halves(part.devices)):
            yield (*parts[:number], Part(one, here), Part(other, there), *parts[number + 1 :])


def _cut_anew(parts: Parts, places: StageDevices, edges: Edges) -> Iterator[Parts]:
    """Two neighbouring stages of few layers: the cut between them and their devices at once."""
    for number, (one, other) in enumerate(pairwise(parts)):
        both = Part(one.layers + other.layers, one.devices + other.devices)
        if len(both.layers) > FEW_LAYERS or len(both.devices) > FEW_DEVICES:
            continue
        for front, back in _cuts(both, edges):
            for here, there in places.halves(tuple(sorted(both.devices))):
                yield (*parts[:number], Part(front, here), Part(back, there), *parts[number + 2 :])


def _cuts(part: Part, edges: Edges) -> list[tuple[Layers, Layers]]:
    """Behind each layer of a few, or where that keeps the edges any of very few in front of the
    others; of many in the middle."""
    layers = tuple(sorted(part.layers))
    if len(layers) > FEW_LAYERS:
        return [(layers[: len(layers) // 2], layers[len(layers) // 2 :])]
    fronts = dict.fromkeys(layers[:cut] for cut in range(1, len(layers)))
    if len(layers) <= ANY_LAYERS:
        sizes = range(1, len(layers))
        fronts |= dict.fromkeys(chain.from_iterable(combinations(layers, size) for size in sizes))
    return [
        (front, tuple(layer for layer in layers if layer not in front))
        for front in fronts
        if not any(a in layers and a not in front and b in front for a, b in edges)
    ]

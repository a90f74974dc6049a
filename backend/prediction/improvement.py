"""Plans that differ little from one another: what a search tries once it has its best candidates.

Candidates come from a cost model in which all-reduces overlap with compute and links carry one
direction at a time. The simulator knows better: a layer may want to move over a border, a device
to another stage or out of use, two stages to be one, or one to be two.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise, product

from backend.cluster.cluster import Cluster
from backend.planning.plan import Partition, Plan, Stage
from backend.prediction.device_moves import StageDevices, in_turn, moved_devices
from backend.profiles.profile import Profile

FEW_LAYERS = 8
"""Layers of a stage that is split behind each of them; a longer one is split in its middle."""


@dataclass(frozen=True, slots=True)
class Part:
    """A stage by its layers, numbered as the profile has them, and its devices."""

    layers: tuple[int, ...]
    devices: tuple[int, ...]


Parts = tuple[Part, ...]


def nearby(plan: Plan, profile: Profile, cluster: Cluster) -> Iterator[Plan]:
    """`plan` with one layer in a neighbouring stage, one device in another one, out of use or
    newly in use, two devices exchanged, two stages joined or one split; with the replicas of each
    stage also in the machines in turn. None where stages share devices."""
    partition = plan.partition
    if partition.chunks > 1 or plan.num_pipelines > 1:
        return
    order = partition.order or tuple(range(len(profile.layers)))
    parts = tuple(Part(order[s.first : s.stop], s.devices) for s in partition.stages)
    seen = {partition}
    for changed in (parts, *_changed(parts, profile, cluster)):
        for other in (_partition(changed), _partition(_in_turn(changed, cluster))):
            if other in seen:
                continue
            seen.add(other)
            yield replace(plan, partition=other)


def _in_turn(parts: Parts, cluster: Cluster) -> Parts:
    """The replicas of each stage in the machines in turn, so that stages with as many in each hand
    microbatches on inside of them."""
    return tuple(replace(part, devices=in_turn(part.devices, cluster)) for part in parts)


def _changed(parts: Parts, profile: Profile, cluster: Cluster) -> Iterator[Parts]:
    yield from _moved_layers(parts, profile.graph.edges)
    for devices in moved_devices(tuple(part.devices for part in parts), cluster):
        yield tuple(replace(p, devices=d) for p, d in zip(parts, devices, strict=True))
    yield from _joined(parts)
    yield from _split(parts, StageDevices(tuple(part.devices for part in parts), cluster))


def _partition(parts: Parts) -> Partition:
    """Each stage's layers in the profile's order."""
    order = tuple(layer for part in parts for layer in sorted(part.layers))
    stages, first = [], 0
    for part in parts:
        stages.append(Stage(first, first + len(part.layers), part.devices))
        first += len(part.layers)
    return Partition(tuple(stages), () if order == tuple(range(first)) else order)


def _moved_layers(parts: Parts, edges: tuple[tuple[int, int], ...]) -> Iterator[Parts]:
    """One layer a stage further, which nothing behind it in its own reads, or one back."""
    stage_of = {layer: number for number, part in enumerate(parts) for layer in part.layers}
    inside = [(a, b) for a, b in edges if stage_of[a] == stage_of[b]]
    read, reads = {a for a, _ in inside}, {b for _, b in inside}
    for number, (one, other) in enumerate(pairwise(parts)):
        rest = parts[:number], parts[number + 2 :]
        if len(one.layers) > 1:
            for layer in (each for each in one.layers if each not in read):
                yield _with_pair(rest, _without(one, layer), _with(other, layer))
        if len(other.layers) > 1:
            for layer in (each for each in other.layers if each not in reads):
                yield _with_pair(rest, _with(one, layer), _without(other, layer))


def _with_pair(rest: tuple[Parts, Parts], one: Part, other: Part) -> Parts:
    return (*rest[0], one, other, *rest[1])


def _with(part: Part, layer: int) -> Part:
    return replace(part, layers=(*part.layers, layer))


def _without(part: Part, layer: int) -> Part:
    return replace(part, layers=tuple(each for each in part.layers if each != layer))


def _joined(parts: Parts) -> Iterator[Parts]:
    """Two neighbouring stages as one, on all of their devices or on those of one of them."""
    for number, (one, other) in enumerate(pairwise(parts)):
        both = tuple(sorted(one.devices + other.devices))
        for devices in (both, one.devices, other.devices):
            part = Part(one.layers + other.layers, devices)
            yield (*parts[:number], part, *parts[number + 2 :])


def _split(parts: Parts, places: StageDevices) -> Iterator[Parts]:
    """A stage as two: its devices are divided, or an idle one takes a half."""
    for number, part in enumerate(parts):
        for cut, (here, there) in product(_cuts(part), places.halves(part.devices)):
            layers = tuple(sorted(part.layers))
            one, other = Part(layers[:cut], here), Part(layers[cut:], there)
            yield (*parts[:number], one, other, *parts[number + 1 :])


def _cuts(part: Part) -> tuple[int, ...]:
    count = len(part.layers)
    return tuple(range(1, count)) if count <= FEW_LAYERS else (count // 2,)

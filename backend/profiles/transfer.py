"""A profile measured on one device as another would run it: layer by layer, by both peaks."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, replace

from backend.errors import InvalidInput
from backend.profiles.devices import Peak, find, names, peak
from backend.profiles.layer import Layer
from backend.profiles.profile import Profile
from backend.profiles.roofline import BACKWARD, ERROR, seconds, traffic

MEMORY_SHARE = 0.5
"""A layer whose bytes alone take this share of its measured time, or more, is taken to be bound
by memory (ours)."""
UPDATE_TENSORS, SUM_TENSORS = 5, 3
"""Tensors of a layer's weights that an update with momentum reads and writes (weights, gradient,
momentum; weights, momentum), and that summing two gradients does."""


def on_device(profile: Profile, target: str, measured_on: str = "", precision: str = "") -> Profile:
    """`profile` as the device `target` would run it, computing in `precision` on both ("" = as
    the profile was measured); see `carried`. Names are those of `devices.find`; without
    `measured_on` the profile's own device counts. Raises `InvalidInput` for unknown ones."""
    source, precision = measured_on or profile.device, precision or profile.precision
    if find(source) is None:
        raise InvalidInput(
            f"no peaks of a device {source!r} are known",
            f"Say what it was measured on (Measured on, or --measured-on): {names()}.",
        )
    return carried(profile, peak(source, precision), peak(target, precision))


def carried(profile: Profile, here: Peak, there: Peak) -> Profile:
    """What was measured `here` as it would be `there`.

    Each layer keeps the share of the peak that was measured, of operations or of memory,
    whichever binds it on the roofline (Williams, Waterman, Patterson, CACM 2009): by its
    operations and bytes where the profile counts operations, else by how much of its time its
    bytes explain (`MEMORY_SHARE`). Updates are bound by memory, and so is what a codec does per
    byte. Bytes stay as they are, and what a message costs its hosts: only devices change. The notes
    say between which factors the answer lies. How far off it is was measured between two
    instruction sets of one processor (`tests/benchmarks/bench_roofline.py`).
    """
    compute, memory = there.flops / here.flops, there.bandwidth / here.bandwidth
    layers = (
        _carried(layer, size, here, there)
        for layer, size in zip(profile.layers, _moved(profile), strict=True)
    )
    low, high = sorted((compute, memory))
    note = (
        f"not measured on {there.name}: each layer's time on {here.name} over the ratio of their "
        f"peaks, {compute:.3g} where operations bind it and {memory:.3g} where memory does; were "
        f"every layer bound by the other, the whole would be {low:.3g} to {high:.3g} times as fast"
    )
    speeds = tuple(each.scaled(1 / memory) for each in profile.coding_speeds)
    return replace(_of(profile, layers, there, note), coding_speeds=speeds)


def computed(profile: Profile, there: Peak) -> Profile:
    """`profile` as the device of `there` would run it at its peak: seconds from counted operations
    and bytes alone (`roofline.seconds`), for profiles that do not say what they were measured on.
    Backwards take as many times their forward as measured. Raises `InvalidInput` where a layer's
    operations are not counted."""
    if missing := next((each.name for each in profile.layers if each.flops is None), None):
        raise InvalidInput(
            f"no peaks of {profile.device!r} are known, nor the operations of layer {missing!r}",
            f"Say what it was measured on (Measured on, or --measured-on): {names()}.",
        )
    layers = (
        _computed(layer, size, there)
        for layer, size in zip(profile.layers, _moved(profile), strict=True)
    )
    return _of(profile, layers, there, f"not measured on {there.name}; {ERROR}")


def _of(profile: Profile, layers: Iterable[Layer], there: Peak, note: str) -> Profile:
    """`profile` with the layers of another device, and nothing that was measured as a whole."""
    return replace(
        profile.with_layers(layers),
        device=there.name,
        whole_forward=0.0,
        whole_backward=0.0,
        whole_update=0.0,
        coding_speeds=(),
        notes=(*profile.notes, note),
    )


def moved_bytes(profile: Profile, on_chip: float = 0.0) -> list[float]:
    """Of a forward of each layer, between a device and its memory (`roofline.traffic`)."""
    return [traffic(each.read, each.weights, each.output, on_chip) for each in _moved(profile)]


@dataclass(frozen=True, slots=True)
class _Moved:
    """Bytes of a layer's inputs, weights and output."""

    read: float
    weights: float
    output: float

    def on(self, peak: Peak) -> float:
        """Between that device and its memory in a forward."""
        return traffic(self.read, self.weights, self.output, peak.on_chip)


def _computed(layer: Layer, size: _Moved, there: Peak) -> Layer:
    forward = seconds(layer.flops or 0.0, size.on(there), there)
    backward = layer.backward / layer.forward if layer.forward else BACKWARD
    once = layer.parameter_bytes / there.bandwidth
    return replace(
        layer.scaled(forward / layer.forward if layer.forward else 1.0),
        forward=forward,
        backward=forward * backward,
        update=UPDATE_TENSORS * once,
        out_of_place_update=UPDATE_TENSORS * once,
        adding=SUM_TENSORS * once,
    )


def _carried(layer: Layer, size: _Moved, here: Peak, there: Peak) -> Layer:
    """By the longer of operations and bytes where the record of a device tells what tiles move,
    else by what binds it here. What starting a layer takes is the device's."""
    memory = there.bandwidth / here.bandwidth
    before = seconds(layer.flops or 0.0, size.on(here), replace(here, launch=0.0))
    if layer.flops is not None and there.on_chip and before:
        share = seconds(layer.flops, size.on(there), replace(there, launch=0.0)) / before
    elif _by_memory(layer, size.on(here), here):
        share = 1 / memory
    else:
        share = here.flops / there.flops
    found = layer.scaled(share, 1 / memory)
    if not (here.launch or there.launch):
        return found
    forward, backward = (
        max(0.0, before - here.launch) * share + there.launch if before else 0.0
        for before in (layer.forward, layer.backward)
    )
    halves = backward / found.backward if found.backward else 1.0
    return replace(
        found,
        forward=forward,
        backward=backward,
        backward_input=found.backward_input * halves,
        backward_weight=found.backward_weight * halves,
    )


def _moved(profile: Profile) -> list[_Moved]:
    """What a forward of each layer reads and writes."""
    read: defaultdict[int, float] = defaultdict(float)
    for tensor in profile.graph.tensors:
        for reader in tensor.readers:
            read[reader] += tensor.bytes
    return [
        _Moved(read[number], layer.parameter_bytes + layer.frozen_bytes, layer.output_bytes)
        for number, layer in enumerate(profile.layers)
    ]


def _by_memory(layer: Layer, moved: float, here: Peak) -> bool:
    if layer.flops is not None:
        return layer.flops / here.flops < moved / here.bandwidth
    return moved / here.bandwidth >= MEMORY_SHARE * layer.forward

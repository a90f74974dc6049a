"""A profile measured on one device as another would run it: layer by layer, by both peaks."""

from collections import defaultdict
from dataclasses import replace

from backend.errors import InvalidInput
from backend.profiles.devices import Peak, find, names, peak
from backend.profiles.layer import Layer
from backend.profiles.profile import Profile

MEMORY_SHARE = 0.5
"""A layer whose bytes alone take this share of its measured time, or more, is taken to be bound
by memory (ours)."""


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
    moved = _moved(profile)
    layers = (
        layer.scaled(1 / (memory if _by_memory(layer, size, here) else compute), 1 / memory)
        for layer, size in zip(profile.layers, moved, strict=True)
    )
    low, high = sorted((compute, memory))
    note = (
        f"not measured on {there.name}: each layer's time on {here.name} over the ratio of their "
        f"peaks, {compute:.3g} where operations bind it and {memory:.3g} where memory does; were "
        f"every layer bound by the other, the whole would be {low:.3g} to {high:.3g} times as fast"
    )
    return replace(
        profile.with_layers(layers),
        device=there.name,
        whole_forward=0.0,
        whole_backward=0.0,
        whole_update=0.0,
        coding_speeds=tuple(each.scaled(1 / memory) for each in profile.coding_speeds),
        notes=(*profile.notes, note),
    )


def _moved(profile: Profile) -> list[float]:
    """Bytes that a forward of each layer reads and writes: inputs, weights, output."""
    read: defaultdict[int, float] = defaultdict(float)
    for tensor in profile.graph.tensors:
        for reader in tensor.readers:
            read[reader] += tensor.bytes
    return [
        read[number] + layer.parameter_bytes + layer.frozen_bytes + layer.output_bytes
        for number, layer in enumerate(profile.layers)
    ]


def _by_memory(layer: Layer, moved: float, here: Peak) -> bool:
    if layer.flops is not None:
        return layer.flops / here.flops < moved / here.bandwidth
    return moved / here.bandwidth >= MEMORY_SHARE * layer.forward

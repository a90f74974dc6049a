"""A profile measured on one device as another would run it: layer by layer, by both peaks."""

from collections import defaultdict
from dataclasses import replace

from backend.errors import InvalidInput
from backend.profiles.profile import Layer, Profile
from backend.profiles.roofline import PEAKS, Peak

MEMORY_SHARE = 0.5
"""A layer whose bytes alone take this share of its measured time, or more, is taken to be bound
by memory (ours)."""


def on_device(profile: Profile, target: str, measured_on: str = "") -> Profile:
    """`profile` as the device `target` (a name of `PEAKS`) would run it; see `carried`. Raises
    `InvalidInput` for an unknown device."""
    return carried(profile, _peak(measured_on or _name_of(profile.device)), _peak(target))


def carried(profile: Profile, here: Peak, there: Peak) -> Profile:
    """What was measured `here` as it would be `there`.

    Each layer keeps the share of the peak that was measured, of operations or of memory,
    whichever binds it on the roofline (Williams, Waterman, Patterson, CACM 2009): by its
    operations and bytes where the profile counts operations, else by how much of its time its
    bytes explain (`MEMORY_SHARE`). Updates are bound by memory. Bytes stay as they are. The
    notes say between which factors the answer lies. How far off it is was measured between two
    instruction sets of one processor (`tests/benchmarks/bench_roofline.py`).
    """
    compute, memory = there.flops / here.flops, there.bandwidth / here.bandwidth
    moved = _moved(profile)
    layers = tuple(
        _faster(layer, memory if _by_memory(layer, size, here) else compute, memory)
        for layer, size in zip(profile.layers, moved, strict=True)
    )
    low, high = sorted((compute, memory))
    note = (
        f"not measured on {there.name}: each layer's time on {here.name} over the ratio of their "
        f"peaks, {compute:.3g} where operations bind it and {memory:.3g} where memory does; were "
        f"every layer bound by the other, the whole would be {low:.3g} to {high:.3g} times as fast"
    )
    return replace(
        profile,
        graph=replace(profile.graph, layers=layers),
        device=there.name,
        whole_forward=0.0,
        whole_backward=0.0,
        whole_update=0.0,
        handling=None,
        notes=(*profile.notes, note),
    )


def _peak(name: str) -> Peak:
    if name not in PEAKS:
        raise InvalidInput(
            f"no peaks of a device {name!r} are known",
            f"Known are {', '.join(PEAKS)}; say what the profile was measured on (--measured-on).",
        )
    return PEAKS[name]


def _name_of(device: str) -> str:
    """The name in `PEAKS` of a device as profiles call it ("NVIDIA H200"), else its own."""
    same = (name for name, peak in PEAKS.items() if peak.name == device)
    words = device.lower().replace("-", " ").split()
    return next(iter((*same, *(word for word in words if word in PEAKS))), device)


def _moved(profile: Profile) -> list[float]:
    """Bytes that a forward of each layer reads and writes: inputs, weights, output."""
    read: defaultdict[int, float] = defaultdict(float)
    for tensor in profile.graph.tensors:
        for reader in tensor.readers:
            read[reader] += tensor.bytes
    return [
        read[number] + layer.parameter_bytes + layer.output_bytes
        for number, layer in enumerate(profile.layers)
    ]


def _by_memory(layer: Layer, moved: float, here: Peak) -> bool:
    if layer.flops is not None:
        return layer.flops / here.flops < moved / here.bandwidth
    return moved / here.bandwidth >= MEMORY_SHARE * layer.forward


def _faster(layer: Layer, compute: float, memory: float) -> Layer:
    return replace(
        layer,
        forward=layer.forward / compute,
        backward=layer.backward / compute,
        backward_input=layer.backward_input / compute,
        backward_weight=layer.backward_weight / compute,
        update=layer.update / memory,
        adding=layer.adding / memory,
        renewal=layer.renewal / memory,
    )

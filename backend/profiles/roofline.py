"""Profiles of devices nobody here has: seconds from operations, bytes and a device's peaks."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil

from backend.errors import InvalidInput
from backend.profiles.devices import Peak
from backend.profiles.layer import Layer
from backend.profiles.profile import ModelGraph, Profile

BACKWARD = 2.0
"""A backward computes two products of the forward's size: the inputs' and the weights' gradient."""
ERROR = (
    "roofline: real kernels reach less of a device's peaks, or need fewer operations, and start-up "
    "costs are left out: five networks measured on a V100 took 0.8 to 2.6 times as long, small "
    "layers are off most; measure a profile before relying on it"
)
"""The figures are of `tests/benchmarks/bench_roofline.py`, over PipeDream's published profiles."""


@dataclass(frozen=True, slots=True)
class Work:
    """One layer: operations of a forward and bytes that it moves (inputs, outputs, weights).
    `backward` is how many times as long its backward takes: less where weights are frozen."""

    name: str
    kind: str
    flops: float
    moved_bytes: float
    output_bytes: int
    parameter_bytes: int
    backward: float = BACKWARD


def roofline(
    name: str,
    work: Sequence[Work],
    edges: Sequence[tuple[int, int]],
    microbatch: int,
    peak: Peak,
) -> Profile:
    """A profile whose layers take max(operations / peak, bytes / bandwidth) (Williams,
    Waterman, Patterson: "Roofline", CACM 2009); a backward `Work.backward` times the forward. Its
    notes state the error. Raises `InvalidInput` for a peak that is not above 0."""
    if min(peak.flops, peak.bandwidth) <= 0 or not 0 < peak.efficiency <= 1:
        raise InvalidInput(
            f"{peak.name}: peaks of {peak.flops:g} operations/s and {peak.bandwidth:g} bytes/s "
            f"at efficiency {peak.efficiency:g} are not those of a device",
            "Peaks are above 0, the efficiency is above 0 and at most 1.",
        )
    layers = tuple(_layer(item, peak) for item in work)
    graph = ModelGraph(layers, tuple(sorted(edges)))
    return Profile(name, graph, microbatch, device=peak.name, notes=(ERROR,))


def seconds(flops: float, moved_bytes: float, peak: Peak) -> float:
    """Of one forward: what starting it takes, and the longer of its operations and its bytes."""
    busy = max(flops / peak.flops, moved_bytes / peak.bandwidth) / peak.efficiency
    return peak.launch + busy


def traffic(read: float, weights: float, output: float, on_chip: float = 0.0) -> float:
    """Bytes between a device and its memory for a layer of so many bytes of inputs, weights and
    output. Half of `on_chip` bytes holds what stays (the other half is being filled): the weights
    in pieces, for each of which all inputs are read, or the output in pieces, for each of which
    all weights are; the fewer bytes count (loop tiling as in Zhang et al., FPGA 2015; the rule is
    ours). With 0, which is not known, everything moves once."""
    once = read + weights + output
    if not on_chip:
        return once
    pieces = [max(1, ceil(kept / (on_chip / 2))) for kept in (weights, output)]
    return once + min(read * (pieces[0] - 1), weights * (pieces[1] - 1))


def _layer(work: Work, peak: Peak) -> Layer:
    busy = seconds(work.flops, work.moved_bytes, peak)
    return Layer(
        work.name, work.kind, busy, work.backward * busy, work.output_bytes, work.parameter_bytes
    )

"""Profiles of devices nobody here has: seconds from operations, bytes and a device's peaks."""

from collections.abc import Sequence
from dataclasses import dataclass

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


def _layer(work: Work, peak: Peak) -> Layer:
    busy = max(work.flops / peak.flops, work.moved_bytes / peak.bandwidth) / peak.efficiency
    return Layer(
        work.name, work.kind, busy, work.backward * busy, work.output_bytes, work.parameter_bytes
    )

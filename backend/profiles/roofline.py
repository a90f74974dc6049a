"""Profiles of devices nobody here has: seconds from operations, bytes and a device's peaks."""

from collections.abc import Sequence
from dataclasses import dataclass

from backend.errors import InvalidInput
from backend.profiles.profile import Layer, ModelGraph, Profile

BACKWARD = 2.0
"""A backward computes two products of the forward's size: the inputs' and the weights' gradient."""
ERROR = (
    "roofline: real kernels reach less of a device's peaks, or need fewer operations, and start-up "
    "costs are left out: five networks measured on a V100 took 0.8 to 2.6 times as long, small "
    "layers are off most; measure a profile before relying on it"
)
"""The figures are of `tests/benchmarks/bench_roofline.py`, over PipeDream's published profiles."""


@dataclass(frozen=True, slots=True)
class Peak:
    """What a device can do at most: `flops` operations/s, `bandwidth` bytes/s of its memory.
    `efficiency` (0 to 1) is the share of both that is assumed to be reached."""

    name: str
    flops: float
    bandwidth: float
    efficiency: float = 1.0


PEAKS: dict[str, Peak] = {
    "v100": Peak("V100 (fp32)", 15.7e12, 900e9),
    "a100": Peak("A100 40 GB (tf32)", 156e12, 1555e9),
    "h100": Peak("H100 SXM (bf16, dense)", 989e12, 3350e9),
    "h100-tf32": Peak("H100 SXM (tf32, dense)", 494.7e12, 3350e9),
    "h200": Peak("H200 (bf16, dense)", 989e12, 4800e9),
    "h200-tf32": Peak("H200 (tf32, dense)", 494.7e12, 4800e9),
}
"""Dense operations/s without sparsity, and bytes/s of memory. Sources, looked up on 2026-11-20.
V100 SXM2: 5,120 FP32 cores (techrival.com, after NVIDIA) x 2 x 1.53 GHz, 900 GB/s. A100 and
H100: NVIDIA's data sheets (TF32 156, 1,555 GB/s; BF16 989.4, TF32 494.7, 3.35 TB/s) as quoted
at glennklockwood.com/garden/processors/A100 and /h100; H200 is an H100 with 4.8 TB/s (same).
The vendor's own files could not be opened from where this was written."""


@dataclass(frozen=True, slots=True)
class Work:
    """One layer: operations of a forward and bytes that it moves (inputs, outputs, weights)."""

    name: str
    kind: str
    flops: float
    moved_bytes: float
    output_bytes: int
    parameter_bytes: int


def roofline(
    name: str,
    work: Sequence[Work],
    edges: Sequence[tuple[int, int]],
    microbatch: int,
    peak: Peak,
) -> Profile:
    """A profile whose layers take max(operations / peak, bytes / bandwidth) (Williams,
    Waterman, Patterson: "Roofline", CACM 2009); a backward `BACKWARD` times the forward. Its
    notes state the error. Raises `InvalidInput` for a peak that is not above 0."""
    if min(peak.flops, peak.bandwidth) <= 0 or not 0 < peak.efficiency <= 1:
        raise InvalidInput(
            f"{peak.name}: peaks of {peak.flops:g} operations/s and {peak.bandwidth:g} bytes/s "
            f"at efficiency {peak.efficiency:g} are no device",
            "Peaks are above 0, the efficiency is above 0 and at most 1.",
        )
    layers = tuple(_layer(item, peak) for item in work)
    graph = ModelGraph(layers, tuple(sorted(edges)))
    return Profile(name, graph, microbatch, device=peak.name, notes=(ERROR,))


def _layer(work: Work, peak: Peak) -> Layer:
    busy = max(work.flops / peak.flops, work.moved_bytes / peak.bandwidth) / peak.efficiency
    return Layer(
        work.name, work.kind, busy, BACKWARD * busy, work.output_bytes, work.parameter_bytes
    )

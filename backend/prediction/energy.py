"""Joules of a sample: what the devices of a plan draw while they compute and while they wait.

Watts are the cluster's, else the most that a known type of device draws. Not counted: what hosts,
links and cooling draw, and devices that the plan does not use.
Source: the energy roofline of Choi, Bedard, Fowler and Vuduc (IPDPS 2013): times overlap, energies
add, and what a device draws whatever it does counts for the whole time.
"""

from collections import defaultdict
from dataclasses import dataclass

from backend.cluster.cluster import Cluster, Device
from backend.prediction.prediction import Prediction
from backend.profiles.devices import find
from backend.units import count_text, joules_text, watts_text


@dataclass(frozen=True, slots=True)
class Energy:
    """`joules` of a sample. `is_most`: watts of a device that waits are not known, so that it is
    counted as one that computes."""

    joules: float
    is_most: bool


def energy(found: Prediction, cluster: Cluster, timed_on: str = "") -> Energy | None:
    """Of a plan on this cluster; None where watts of one of its devices are not known. Its seconds
    are those of the device `timed_on`: where that is of another known type, the watts of the
    cluster's type say nothing of them."""
    seconds = found.seconds_per_minibatch
    samples = found.samples_per_second * seconds
    if not samples:
        return None
    microbatches = samples / found.plan.microbatch
    busy: defaultdict[int, float] = defaultdict(float)
    for stage, compute in zip(found.plan.partition.stages, found.stage_seconds, strict=True):
        slowest = min(cluster.at(number).speed for number in stage.devices)
        for number, part in zip(stage.devices, stage.parts, strict=True):
            own = compute / stage.replicas
            if stage.shares:
                own = compute * part * slowest / cluster.at(number).speed
            busy[number] += microbatches * own
    joules, is_most = 0.0, False
    for number, computing in busy.items():
        device, working = cluster.at(number), min(seconds, computing)
        watts = _watts(device, timed_on)
        if watts is None:
            return None
        idle = watts if device.idle_watts is None else min(device.idle_watts, watts)
        is_most = is_most or (device.idle_watts is None and working < seconds)
        joules += idle * seconds + (watts - idle) * working
    return Energy(joules / samples, is_most)


def _watts(device: Device, timed_on: str) -> float | None:
    """At work."""
    if device.watts is not None:
        return device.watts
    known, timed = find(device.name), find(timed_on)
    if known is None or (timed is not None and timed[0] is not known[0]):
        return None
    return known[0].watts


def energy_reason(found: Prediction, known: Energy | None) -> str:
    """In a sentence; "" where it is not known."""
    if known is None:
        return ""
    together = watts_text(known.joules * found.samples_per_second)
    most = "at most " * known.is_most
    devices = count_text(found.plan.partition.num_devices, "device")
    return f"A sample takes {most}{joules_text(known.joules)}: {devices} draw {most}{together}."

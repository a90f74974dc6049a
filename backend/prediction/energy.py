"""Joules of a sample: what the devices of a plan draw while they compute and while they wait.

A device whose record tells joules of an operation and of a byte of memory, and what it draws while
it waits, is counted by those, else by its watts: the cluster's, or the most that a known type
draws. Not counted: what hosts and cooling draw, links without a record, and devices that the plan
does not use.
Source: the energy roofline of Choi, Bedard, Fowler and Vuduc (IPDPS 2013): times overlap, energies
add, and what a device draws whatever it does counts for the whole time.
"""

from collections import defaultdict
from dataclasses import dataclass
from typing import NamedTuple

from backend.cluster.cluster import Cluster, Device
from backend.cluster.device_record import DeviceRecord
from backend.planning.plan import Plan, Stage
from backend.prediction.prediction import Prediction
from backend.profiles.devices import find
from backend.profiles.profile import Profile
from backend.profiles.roofline import BACKWARD
from backend.profiles.transfer import UPDATE_TENSORS, moved_bytes
from backend.units import count_text, joules_text, watts_text


@dataclass(frozen=True, slots=True)
class Energy:
    """`joules` of a sample, the sum of its parts. `is_most`: watts of a device that waits are not
    known, so that it is counted as one that computes.

    static    what devices draw whatever they do
    compute   of operations; of a device that is counted by its watts all that it draws beside
    memory    of bytes of the devices' memories
    links     of bytes that are sent
    """

    joules: float
    is_most: bool
    static: float = 0.0
    compute: float = 0.0
    memory: float = 0.0
    links: float = 0.0


class _DeviceWork(NamedTuple):
    """Of a device in a minibatch: seconds of compute, joules of operations and of bytes (None where
    its record, or the profile, tells too little)."""

    seconds: float
    joules: tuple[float, float] | None


def energy(found: Prediction, cluster: Cluster, profile: Profile | None = None) -> Energy | None:
    """Of a plan on this cluster by a profile of its microbatch size; None where watts of one of
    its devices are not known. Where its seconds are those of another known type of device, the
    watts of the cluster's type say nothing of them."""
    seconds = found.seconds_per_minibatch
    samples = found.samples_per_second * seconds
    if not samples:
        return None
    seconds *= found.plan.num_sites  # a device is in one site, whose minibatches take as long
    static = compute = memory = 0.0
    is_most = False
    shares = _works(found, cluster, profile, samples / found.plan.microbatch)
    for number, works in shares.items():
        device, working = cluster.at(number), min(seconds, sum(work.seconds for work in works))
        counted = [work.joules for work in works if work.joules is not None]
        if device.idle_watts is not None and len(counted) == len(works):
            static += device.idle_watts * seconds
            compute += sum(each for each, _ in counted)
            memory += sum(each for _, each in counted)
            continue
        watts = _watts(device, profile.device if profile else "")
        if watts is None:
            return None
        idle = watts if device.idle_watts is None else min(device.idle_watts, watts)
        is_most = is_most or (device.idle_watts is None and working < seconds)
        static += idle * seconds
        compute += (watts - idle) * working
    links = found.sent_bytes * _joules_of_link([cluster.at(number) for number in shares])
    parts = [each / samples for each in (static, compute, memory, links)]
    return Energy(sum(parts), is_most, *parts)


def _works(
    found: Prediction, cluster: Cluster, profile: Profile | None, microbatches: float
) -> dict[int, list[_DeviceWork]]:
    """What each device of the plan does in a minibatch, by its number."""
    works: defaultdict[int, list[_DeviceWork]] = defaultdict(list)
    ordered = profile.in_order(found.plan.partition.order) if profile else None
    for stage, compute in zip(found.plan.partition.stages, found.stage_seconds, strict=True):
        slowest = min(cluster.speeds(stage.devices))
        for number, part in zip(stage.devices, stage.parts, strict=True):
            device, own, speed = cluster.at(number), 1 / stage.replicas, 1.0
            if stage.shares:
                own, speed = float(part), device.speed / slowest
            counted = None
            if ordered and _tells(device):
                counted = _counted(found.plan, stage, ordered, microbatches * own, device.record)
            works[number].append(_DeviceWork(microbatches * compute * own / speed, counted))
    return works


def _tells(device: Device) -> bool:
    record = device.record
    return None not in (device.idle_watts, record.joules_per_flop, record.joules_per_byte)


def _counted(
    plan: Plan, stage: Stage, profile: Profile, microbatches: float, record: DeviceRecord
) -> tuple[float, float] | None:
    """Joules of operations and of bytes of a replica for so many microbatches and one update: a
    backward counts as two forwards, one that is recomputed as a third. None where operations of a
    layer are not counted."""
    layers = profile.layers[stage.first : stage.stop]
    sizes = moved_bytes(profile, record.on_chip or 0.0)[stage.first : stage.stop]
    moved = float(UPDATE_TENSORS * sum(layer.parameter_bytes for layer in layers))
    flops = 0.0
    for layer, size in zip(layers, sizes, strict=True):
        if layer.flops is None:
            return None
        passes = microbatches * (1 + plan.recompute + (BACKWARD if layer.backward else 0.0))
        moved += passes * size
        flops += passes * layer.flops
    return flops * (record.joules_per_flop or 0.0), moved * (record.joules_per_byte or 0.0)


def _joules_of_link(devices: list[Device]) -> float:
    """Of a byte that any of them sends, in the mean; 0 where one does not tell it."""
    known = [device.record.joules_per_link_byte for device in devices]
    told = [each for each in known if each is not None]
    return sum(told) / len(told) if told and len(told) == len(known) else 0.0


def _watts(device: Device, timed_on: str) -> float | None:
    """At work."""
    if device.watts is not None:
        return device.watts
    known, timed = find(device.name), find(timed_on)
    if known is None or (timed is not None and timed[0] is not known[0]):
        return None
    return known[0].watts


def parts_words(known: Energy) -> str:
    """As "static 1.20 J, compute 0.51 J"; "" of one part alone, which is the whole."""
    parts = {name: getattr(known, name) for name in ("static", "compute", "memory", "links")}
    said = [f"{name} {joules_text(part)}" for name, part in parts.items() if part]
    return ", ".join(said) if len(said) > 1 else ""


def energy_reason(found: Prediction, known: Energy | None) -> str:
    """In a sentence; "" where it is not known."""
    if known is None:
        return ""
    together = watts_text(known.joules * found.samples_per_second)
    most = "at most " * known.is_most
    devices = count_text(len(set(found.plan.devices)), "device")
    said = f"A sample takes {most}{joules_text(known.joules)}: {devices} draw {most}{together}"
    parts = parts_words(known)
    return f"{said} ({parts})." if parts else f"{said}."

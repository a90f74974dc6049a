"""Devices of a cluster by their records: their peaks, and a profile as one of them would run it."""

from dataclasses import replace

from backend.cluster.cluster import Device
from backend.errors import InvalidInput
from backend.profiles.devices import Peak, Precision, find, peak, precision_named
from backend.profiles.profile import Profile
from backend.profiles.transfer import carried, computed, on_device

OWN = "cluster"
"""What the device is called whose profile is asked for: the cluster's own."""


def peak_of(device: Device, precision: str) -> Peak | None:
    """By its record, and where that says nothing by the table of known types; None where neither
    knows operations/s in `precision` and bytes/s. Raises `InvalidInput` for an unknown one."""
    wanted, known, record = precision_named(precision), find(device.name), device.record
    flops = getattr(record.flops, wanted) or (known and known[0].flops.get(wanted))
    bandwidth = record.bandwidth or (known and known[0].bandwidth)
    if not flops or not bandwidth:
        return None
    title = known[0].title if known else device.name
    on_chip, launch = record.on_chip or 0.0, record.launch or 0.0
    return Peak(f"{title} ({wanted})", flops, bandwidth, on_chip=on_chip, launch=launch)


def precisions_of(device: Device) -> tuple[Precision, ...]:
    """Those of which its peak is known."""
    return tuple(each for each in Precision if peak_of(device, each))


def as_on(
    profile: Profile, name: str, own: Device, measured_on: str = "", precision: str = ""
) -> Profile:
    """`profile` as the device of this `name` would run it: as measured for "", by the record of a
    cluster's `own` for `OWN`, else by the table. Raises `InvalidInput`."""
    if not name:
        return profile
    if name == OWN:
        return on_own(profile, own, measured_on, precision)
    return on_device(profile, name, measured_on, precision)


def on_own(profile: Profile, device: Device, measured_on: str, precision: str) -> Profile:
    """`profile` as `device` of a cluster would run it. Where peaks of the device it was measured on
    (`measured_on`, else the profile's own) are known, layers keep the share of those that they
    reached (`carried`), else all of the device's is taken to be reached (`computed`). The notes say
    what the record leaves out. Raises `InvalidInput` where neither can be."""
    source, precision = measured_on or profile.device, precision or profile.precision
    there = peak_of(device, precision)
    if there is None:
        raise InvalidInput(
            f"of the cluster's device {device.name!r} no operations/s in {precision} or no bytes/s "
            "are known",
            f"Give it flops: {{{precision}: 47e9}} and bandwidth: 19e9, or the name of a known "
            "type.",
        )
    found = carried(profile, peak(source, precision), there) if find(source) else None
    found = found or computed(profile, there)
    return replace(found, notes=(*found.notes, *_left_out(device, precision)))


def _left_out(device: Device, precision: str) -> list[str]:
    """What is used in place of what the record does not say, in a note."""
    record, known = device.record, find(device.name)
    said = []
    if known and not getattr(record.flops, precision):
        said.append(f"its operations/s are those of {known[0].source}")
    if known and not record.bandwidth:
        said.append(f"the bytes/s of its memory are those of {known[0].source}")
    if not record.on_chip:
        said.append("its on-chip bytes are not known: each tensor counts as moved once")
    if not record.launch:
        said.append("what starting a layer takes is not known and counts as 0")
    return [f"{device.name}: {'; '.join(said)}"] if said else []

"""A cluster without some of its machines."""

from collections.abc import Collection, Sequence
from dataclasses import replace
from itertools import accumulate

from backend.cluster.cluster import Cluster, Level


def machines(cluster: Cluster) -> tuple[int, ...]:
    """Devices of each machine: a member of the innermost level."""
    each = cluster.levels[0].count
    return (each,) * (cluster.num_devices // each)


def without(cluster: Cluster, sizes: Sequence[int], lost: Collection[int]) -> Cluster:
    """`cluster`, whose machines have so many devices each, without those that are `lost`, by
    number; at least one stays. Devices are numbered through again.

    What stays of more than two levels is no tree of equal members: then its machines are joined
    by the slowest of the links above them.
    """
    firsts = (0, *accumulate(sizes))
    kept = [number for number in range(len(sizes)) if number not in lost]
    devices = tuple(
        device for number in kept for device in cluster.each[firsts[number] : firsts[number + 1]]
    )
    levels = _levels(cluster.levels, {sizes[number] for number in kept}, len(kept), len(devices))
    same = len(set(devices)) == 1
    return replace(
        cluster, levels=levels, device=devices[0], devices=() if same else tuple(devices)
    )


def _levels(
    levels: tuple[Level, ...], sizes: Collection[int], count: int, devices: int
) -> tuple[Level, ...]:
    inner, *outer = levels
    if set(sizes) != {inner.count} or not outer:  # machines that are no level of their own
        return (replace(inner, count=devices),)
    if count == 1:
        return (inner,)
    slowest, latest = min(each.bandwidth for each in outer), max(each.latency for each in outer)
    return (inner, Level(count, slowest, latest))

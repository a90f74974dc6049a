"""Unequal devices in other orders: machines and their devices may stand in any order."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from math import inf

from backend.cluster.cluster import Cluster, Device
from backend.planning.plan import Partition

Rank = Callable[[Device], tuple[float, ...]]
WORTH: tuple[Rank, ...] = (
    lambda device: (-device.speed,),
    lambda device: (device.speed,),
    lambda device: (-(device.memory or inf), -device.speed),
)
"""By which devices are put in order: the fastest first, the slowest first, and those with the
most memory first, for stages near the input hold the most microbatches."""


def device_orders(cluster: Cluster) -> Iterator[tuple[int, ...]]:
    """Some orders of the devices that leave the links as they are: the cluster's own, and its
    machines and the devices in them put in order by `WORTH`. Each once; place n has device
    number order[n]."""
    seen = {tuple(range(cluster.num_devices)): None}
    if not cluster.is_uniform:
        for rank in WORTH:
            seen[_sorted(cluster, tuple(range(cluster.num_devices)), rank)] = None
    yield from seen


def _sorted(cluster: Cluster, devices: tuple[int, ...], rank: Rank) -> tuple[int, ...]:
    """`devices` (a whole machine of some level) with its members in order, each in order."""
    sizes = cluster.sizes
    level = sizes.index(len(devices), 1) if len(devices) > 1 else 0
    if level == 0:
        return devices
    size = sizes[level - 1]
    members = [
        _sorted(cluster, devices[start : start + size], rank)
        for start in range(0, len(devices), size)
    ]
    members.sort(key=lambda member: [rank(cluster.at(device)) for device in member])
    return tuple(device for member in members for device in member)


def permuted(cluster: Cluster, order: tuple[int, ...]) -> Cluster:
    """`cluster` with device order[n] at place n."""
    if not cluster.devices:
        return cluster
    return replace(cluster, devices=tuple(cluster.at(device) for device in order))


def with_own_numbers(partition: Partition, order: tuple[int, ...]) -> Partition:
    """A partition of the permuted cluster, with the devices' own numbers."""
    stages = tuple(
        replace(stage, devices=tuple(order[place] for place in stage.devices))
        for stage in partition.stages
    )
    return replace(partition, stages=stages)

"""Partitions whose stages mix devices of unequal speed, each as fast as the sum of their speeds.

PipeDream's planner counts a stage as fast as so many times its slowest device. Where replicas take
shares of a batch, it is as fast as all of them together, so other devices may share a stage.
"""

from collections.abc import Iterator

import numpy as np

from backend.cluster.cluster import Cluster
from backend.planning.cost import Chain, Floats, sync_seconds
from backend.planning.pipedream.device_orders import device_orders, permuted, with_own_numbers
from backend.planning.plan import Partition, Stage
from backend.profiles.profile import Profile

MOST = 2e7
"""Layers times layers times devices times devices above which nothing is looked for: it takes
seconds."""


def by_speeds(profile: Profile, cluster: Cluster, batch: int) -> list[Partition]:
    """Those with the smallest bottleneck in some orders of the devices, of layers in their own
    order, with cuts at the price of the slowest link and with cuts that are free; none of equal
    devices. Replicas sum their gradients once in `batch` microbatches."""
    layers, devices = len(profile.layers), cluster.num_devices
    if cluster.is_uniform or (layers * devices) ** 2 > MOST:
        return []
    found: dict[Partition, None] = {}
    for order in device_orders(cluster):
        chain, placed = Chain(profile, cluster.device), permuted(cluster, order)
        for cuts in (chain.exchanged / cluster.slowest[-1], np.zeros(layers + 1)):
            found[with_own_numbers(_fastest(chain, placed, cuts, batch), order)] = None
    return list(found)


def _fastest(chain: Chain, cluster: Cluster, cuts: Floats, batch: int) -> Partition:
    """The stages on neighbouring devices with the smallest of: seconds of a stage, and of a cut."""
    layers, devices = len(chain.compute) - 1, cluster.num_devices
    compute = np.maximum(chain.compute[:, None] - chain.compute, 0) * chain.device.speed
    weights = chain.parameters[:, None] - chain.parameters
    least = np.full((devices + 1, layers + 1), np.inf)
    least[:, 0] = 0.0
    came = np.zeros((devices + 1, layers + 1, 2), np.int64)
    before = np.tril(np.ones((layers + 1, layers + 1), np.bool_), -1)
    for stop in range(1, devices + 1):
        for start in range(stop):
            speed = cluster.speed_of(range(start, stop))
            level = max(cluster.span(range(start, stop)) - 1, 0)
            sums = sync_seconds(weights, stop - start, cluster.slowest[level]) / batch
            stage = np.maximum(compute / speed, sums)
            every = np.maximum(stage, np.maximum(least[start], cuts)[None])
            every = np.where(before, every, np.inf)
            first = every.argmin(axis=1)
            seconds = every[np.arange(layers + 1), first]
            better = seconds < least[stop] * (1 - 1e-12)
            least[stop][better] = seconds[better]
            came[stop][better] = np.stack([np.full(layers + 1, start), first], axis=1)[better]
    return Partition(tuple(_stages(came, int(least[:, -1].argmin()), layers)))


def _stages(
    came: "np.ndarray[tuple[int, int, int], np.dtype[np.int64]]", stop: int, last: int
) -> Iterator[Stage]:
    start, first = map(int, came[stop, last])
    if first:
        yield from _stages(came, start, first)
    yield Stage(first, last, tuple(range(start, stop)))

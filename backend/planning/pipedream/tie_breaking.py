"""Among plans that are equally fast, the one to prefer: fewer stages, no idle device."""

from collections.abc import Iterator

from backend.cluster.cluster import Cluster
from backend.planning.cost import ROUNDING
from backend.planning.pipedream.bottleneck import CostModel
from backend.planning.plan import Partition, Stage
from backend.profiles.profile import Profile

MOST_STAGES = 40
"""Partitions with more stages are left as they are: each trial costs a look at all of them."""


def tidy(
    profile: Profile,
    cluster: Cluster,
    partition: Partition,
    seconds: float,
    overlap: bool,
) -> Partition:
    """`partition`, or one with fewer stages and idle devices that keeps within `seconds`.
    Where devices differ, those that are idle stay so: they may be the slow ones."""
    if len(partition.stages) > MOST_STAGES:
        return partition
    limit = seconds * (1 + ROUNDING)
    judge = CostModel(profile.in_order(partition.order), cluster, overlap)

    def holds(other: Partition) -> bool:
        return judge.pipeline(other.stages) <= limit

    every = tuple(range(cluster.num_devices))
    single = Partition((Stage(0, len(profile.layers), every),))
    if holds(single):
        return single  # in any order: one stage has no cut
    found = next((p for p in _merged(partition) if holds(p)), None)
    while found:
        partition = found
        found = next((p for p in _merged(partition) if holds(p)), None)
    while wider := next((p for p in _widened(partition, cluster) if holds(p)), None):
        partition = wider
    return partition


def _merged(partition: Partition) -> Iterator[Partition]:
    """Runs of neighbours joined into one stage on all their devices, the longest runs first."""
    stages = partition.stages
    for length in range(len(stages), 1, -1):
        for first in range(len(stages) - length + 1):
            run = stages[first : first + length]
            devices = tuple(sorted(d for stage in run for d in stage.devices))
            joined = Stage(run[0].first, run[-1].stop, devices)
            rest = stages[first + length :]
            yield Partition((*stages[:first], joined, *rest), partition.order)


def _widened(partition: Partition, cluster: Cluster) -> Iterator[Partition]:
    """The idle devices beside a stage given to it, the one with the most replicas first. (Those
    elsewhere would make a plan of another kind than is searched.)"""
    used = {device for stage in partition.stages for device in stage.devices}
    if len(used) == cluster.num_devices or not cluster.is_uniform:
        return
    by_size = sorted(range(len(partition.stages)), key=lambda n: -partition.replicas[n])
    for place in by_size:
        stage = partition.stages[place]
        low, high = min(stage.devices), max(stage.devices) + 1
        while low - 1 >= 0 and low - 1 not in used:
            low -= 1
        while high < cluster.num_devices and high not in used:
            high += 1
        free = (device for device in range(low, high) if device not in used)
        devices = tuple(sorted({*stage.devices, *free}))
        if devices != stage.devices:
            wider = Stage(stage.first, stage.stop, devices)
            stages = (*partition.stages[:place], wider, *partition.stages[place + 1 :])
            yield Partition(stages, partition.order)

"""What a plan is compared with: one stage everywhere, and one device per stage."""

from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from backend.cluster.cluster import Cluster
from backend.planning.balanced import KEPT, side_by_side
from backend.planning.cost import Chain, Floats, cut_seconds, spans
from backend.planning.linear_partition import DEEPEST, Table, linear_partition, stops
from backend.planning.plan import Partition, Stage
from backend.profiles.profile import Profile


def data_parallel(profile: Profile, cluster: Cluster) -> Partition:
    """The whole model on every device; gradients are synchronised every round."""
    return Partition((Stage(0, len(profile.layers), tuple(range(cluster.num_devices))),))


def model_parallel(profile: Profile, cluster: Cluster) -> Partition:
    """One stage per device, balanced by compute alone: the smallest longest stage.

    The plan says nothing about time: the same cut with one microbatch in flight is model
    parallelism without pipelining, with a pipeline schedule a compute-balanced pipeline.
    Links are not considered. Uses as many devices as there are layers, if that is fewer, and
    `DEEPEST` at most.
    """
    count = _most_stages(profile, cluster)
    free = np.zeros(len(profile.layers) + 1)
    return side_by_side(stops(_table(profile, cluster, [free] * (count - 1)), count))


def even_split(profile: Profile, cluster: Cluster) -> Partition:
    """One stage per device with equal numbers of layers, the longer ones first."""
    num_stages = _most_stages(profile, cluster)
    shorter, longer = divmod(len(profile.layers), num_stages)
    sizes = [shorter + (stage < longer) for stage in range(num_stages)]
    return side_by_side([sum(sizes[: stage + 1]) for stage in range(num_stages)])


def straight(profile: Profile, cluster: Cluster) -> Partition:
    """The best pipeline without replication, by PipeDream's cost model (backend.planning.cost):
    devices in their order, each cut at its own link's bandwidth, on the number of devices
    that gives the smallest bottleneck (the fewest of equal ones)."""
    cuts = Chain(profile, cluster.device).exchanged
    between_devices = [
        cut_seconds(cuts, cluster.link(device, device + 1).bandwidth)
        for device in range(_most_stages(profile, cluster) - 1)
    ]
    table = _table(profile, cluster, between_devices)
    bottlenecks = [float(best[-1]) for best, _ in table]
    return side_by_side(stops(table, 1 + bottlenecks.index(min(bottlenecks))))


def _most_stages(profile: Profile, cluster: Cluster) -> int:
    return min(len(profile.layers), cluster.num_devices, DEEPEST)


def _table(profile: Profile, cluster: Cluster, cuts: Sequence[Floats]) -> Table:
    """The smallest bottleneck on each number of devices; `cuts[p]` joins devices p and p + 1."""
    compute = Chain(profile, cluster.device).compute
    return _longest(tuple(compute.tolist()), tuple(tuple(cut.tolist()) for cut in cuts))


@lru_cache(KEPT)
def _longest(compute: tuple[float, ...], cuts: tuple[tuple[float, ...], ...]) -> Table:
    each = [np.array(cut) for cut in cuts]
    return linear_partition(np.maximum, spans(np.array(compute)), each)

"""What a plan is compared with: one stage everywhere, and one device per stage."""

from collections.abc import Sequence

import numpy as np

from backend.cluster.cluster import Cluster
from backend.planning.cost import Chain, Floats, cut_seconds, spans
from backend.planning.plan import Partition, Stage
from backend.profiles.profile import Profile


def data_parallel(profile: Profile, cluster: Cluster) -> Partition:
    """The whole model on every device; gradients are synchronised every round."""
    return Partition((Stage(0, len(profile.layers), tuple(range(cluster.num_devices))),))


def model_parallel(profile: Profile, cluster: Cluster) -> Partition:
    """One stage per device, balanced by compute alone: the smallest longest stage.

    The plan says nothing about time: the same cut with one microbatch in flight is model
    parallelism without pipelining, with a pipeline schedule a compute-balanced pipeline.
    Links are not considered. Uses as many devices as there are layers, if that is fewer.
    """
    free = np.zeros(len(profile.layers) + 1)
    table = _straight_table(profile, cluster, [free] * (_most_stages(profile, cluster) - 1))
    return _backtrack(table, len(table) - 1)


def even_split(profile: Profile, cluster: Cluster) -> Partition:
    """One stage per device with equal numbers of layers, the longer ones first."""
    num_stages = _most_stages(profile, cluster)
    shorter, longer = divmod(len(profile.layers), num_stages)
    sizes = [shorter + (stage < longer) for stage in range(num_stages)]
    return _in_order([sum(sizes[: stage + 1]) for stage in range(num_stages)])


def straight(profile: Profile, cluster: Cluster) -> Partition:
    """The best pipeline without replication, by PipeDream's cost model (backend.planning.cost):
    devices in their order, each cut at its own link's bandwidth, on the number of devices
    that gives the smallest bottleneck (the fewest of equal ones)."""
    cuts = Chain(profile, cluster.device).cuts
    between_devices = [
        cut_seconds(cuts, cluster.link(device, device + 1).bandwidth)
        for device in range(_most_stages(profile, cluster) - 1)
    ]
    table = _straight_table(profile, cluster, between_devices)
    bottlenecks = [float(best[-1]) for best, _ in table]
    return _backtrack(table, bottlenecks.index(min(bottlenecks)))


def _most_stages(profile: Profile, cluster: Cluster) -> int:
    return min(len(profile.layers), cluster.num_devices)


def _straight_table(
    profile: Profile, cluster: Cluster, cuts: Sequence[Floats]
) -> list[tuple[Floats, Floats]]:
    """Per number of stages p: the smallest bottleneck of layers 0..j-1 on p devices, and
    where the last of those stages starts. `cuts[p]` joins devices p and p + 1."""
    compute = spans(Chain(profile, cluster.device).compute)
    best = compute[:, 0]
    table = [(best, np.zeros(len(best)))]
    for cut in cuts:
        ways = np.maximum(np.maximum(best, cut), compute)
        table.append((best := ways.min(axis=1), ways.argmin(axis=1).astype(np.float64)))
    return table


def _backtrack(table: list[tuple[Floats, Floats]], last: int) -> Partition:
    stops = [len(table[0][0]) - 1]
    for _, starts in table[last:0:-1]:
        stops.append(int(starts[stops[-1]]))
    return _in_order(stops[::-1])


def _in_order(stops: Sequence[int]) -> Partition:
    """Stages that end at `stops`, on devices 0, 1, 2, ..."""
    firsts = (0, *stops[:-1])
    return Partition(
        tuple(
            Stage(first, stop, (device,))
            for device, (first, stop) in enumerate(zip(firsts, stops, strict=True))
        )
    )

"""Every plan wherever its stages stand: any devices, in any order of replicas."""

from collections.abc import Iterator
from functools import cache
from itertools import combinations_with_replacement, islice, pairwise, permutations, product

from brute_force import nested_cuts

from backend.cluster.cluster import Cluster
from backend.planning.memory import MemoryRule
from backend.planning.pipedream.bisection import Optimum
from backend.planning.pipedream.bottleneck import CostModel
from backend.planning.plan import Partition, Stage
from backend.profiles.profile import Profile

ALL_ORDERS = 6
"""Devices up to which each order of replicas is tried; of more the sorted one and those that visit
the members of a level in turn."""


def every_placement(profile: Profile, cluster: Cluster) -> Iterator[Partition]:
    """Each at least once but for members of a level that change places, where all are alike."""
    for cuts in nested_cuts(profile):
        count = len(cuts) - 1
        if count > cluster.num_devices:
            continue
        order = tuple(n for a, b in pairwise(cuts) for n in sorted(b - a))
        order = () if order == tuple(sorted(order)) else order
        sizes = [len(cut) for cut in cuts]
        for devices in _stages(cluster, count):
            stages = (Stage(a, b, d) for (a, b), d in zip(pairwise(sizes), devices, strict=True))
            yield Partition(tuple(stages), order)


@cache
def _stages(cluster: Cluster, count: int) -> tuple[tuple[tuple[int, ...], ...], ...]:
    """The devices of so many stages, in every way."""
    found = []
    for labels in _labels(cluster, count):
        sets = [tuple(d for d, x in enumerate(labels) if x == n) for n in range(1, count + 1)]
        if all(sets):
            found += product(*(_orders(each, cluster) for each in sets)) if count > 1 else [sets]
    return tuple(map(tuple, found))


def _labels(cluster: Cluster, count: int) -> Iterator[tuple[int, ...]]:
    """Of each device the stage that it is in, from 1; 0 = idle."""
    if not cluster.is_uniform:
        yield from product(range(count + 1), repeat=cluster.num_devices)
        return
    members = [(label,) for label in range(count + 1)]
    for level in cluster.levels:
        members = [
            tuple(label for member in chosen for label in member)
            for chosen in combinations_with_replacement(members, level.count)
        ]
    yield from members


def _orders(devices: tuple[int, ...], cluster: Cluster) -> set[tuple[int, ...]]:
    if cluster.num_devices <= ALL_ORDERS:
        return set(islice(permutations(devices), 24))
    turns = {tuple(sorted(devices, key=lambda d, s=size: (d % s, d))) for size in cluster.sizes}
    return turns | {devices}


def fastest(
    profile: Profile, cluster: Cluster, rule: MemoryRule | None, found: Optimum
) -> tuple[float, Partition]:
    """The seconds of the fastest plan of all that fit, and it; those of `found` where none is
    faster."""
    best, plan = found.seconds, found.partition
    judges: dict[tuple[int, ...], CostModel] = {}
    for partition in every_placement(profile, cluster):
        if partition.order not in judges:
            judges[partition.order] = CostModel(profile.in_order(partition.order), cluster)
        seconds = judges[partition.order].pipeline(partition.stages)
        if seconds < best * (1 - 1e-9) and (rule is None or rule.fits(profile, cluster, partition)):
            best, plan = seconds, partition
    return best, plan

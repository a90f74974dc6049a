"""Every plan of a model of few layers on few devices, wherever its stages stand: so few that a
search need not go from one to another.

Devices that are alike are told apart by what stands beside them only: of placements that differ in
which machine, or which device of a machine, has which stage, there is one.
"""

from collections.abc import Iterator
from functools import cache
from itertools import chain, combinations, islice, pairwise, permutations, product

from backend.cluster.cluster import Cluster
from backend.planning.plan import Partition, Stage
from backend.profiles.profile import Profile

FEW_LAYERS, FEW_DEVICES = 5, 6
MOST = 15_000
"""Partitions above which a model is searched step by step."""
Layers = tuple[int, ...]
Devices = tuple[tuple[int, ...], ...]


def every_placement(profile: Profile, cluster: Cluster) -> list[Partition]:
    """All of them, with and without idle devices; none where there are more than `MOST`."""
    count = len(profile.layers)
    if count > FEW_LAYERS or cluster.num_devices > FEW_DEVICES:
        return []
    found = list(islice(_partitions(profile, cluster), MOST + 1))
    return found if len(found) <= MOST else []


def _partitions(profile: Profile, cluster: Cluster) -> Iterator[Partition]:
    placed = cache(lambda stages: list(_placed(cluster, stages)))
    for sets in _chains(tuple(range(len(profile.layers))), profile.graph.edges):
        if len(sets) > cluster.num_devices:
            continue
        order = tuple(chain.from_iterable(sets))
        ends = [sum(map(len, sets[: number + 1])) for number in range(len(sets))]
        for devices in placed(len(sets)):
            stages = zip((0, *ends), ends, devices, strict=False)
            own = () if order == tuple(range(len(order))) else order
            yield Partition(tuple(Stage(a, b, d) for a, b, d in stages), own)


def _chains(layers: Layers, edges: tuple[tuple[int, int], ...]) -> Iterator[tuple[Layers, ...]]:
    """The layers in stages, each of which reads only what is in it or before it."""
    if not layers:
        yield ()
    for size in range(1, len(layers) + 1):
        for stage in combinations(layers, size):
            rest = tuple(layer for layer in layers if layer not in stage)
            if not any(a in rest and b in stage for a, b in edges):
                for behind in _chains(rest, edges):
                    yield (stage, *behind)


def _placed(cluster: Cluster, stages: int) -> Iterator[Devices]:
    """Devices for so many stages, and their replicas in every order in which they may take turns:
    where they begin makes no difference in the long run."""
    for labels in product(range(stages + 1), repeat=cluster.num_devices):
        sets = [
            tuple(device for device, label in enumerate(labels) if label == number)
            for number in range(1, stages + 1)
        ]
        if all(sets) and _is_first(labels, cluster):
            first = next((n for n, each in enumerate(sets) if len(each) > 1), 0)
            turns = [_turns(each, number == first) for number, each in enumerate(sets)]
            yield from product(*turns) if stages > 1 else [tuple(sets)]


def _turns(devices: tuple[int, ...], begins: bool) -> list[tuple[int, ...]]:
    if not begins:
        return list(permutations(devices))
    return [(devices[0], *rest) for rest in permutations(devices[1:])]


def _is_first(labels: tuple[int, ...], cluster: Cluster) -> bool:
    """Whether members of each level that are alike stand in the order of their labels."""
    each = cluster.each
    for inner, outer in pairwise(cluster.sizes):
        for start in range(0, len(labels), outer):
            members = range(start, start + outer, inner)
            for one, other in pairwise(members):
                alike = each[one : one + inner] == each[other : other + inner]
                if alike and labels[one : one + inner] > labels[other : other + inner]:
                    return False
    return True

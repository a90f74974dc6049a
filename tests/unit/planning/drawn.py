"""Small cases for brute force, the same ones for the same numbers."""

import random
from dataclasses import dataclass, replace

from backend.cluster.cluster import Cluster, Device, Level
from backend.pipeline.schedules.pipedream import PIPEDREAM
from backend.planning.memory import MemoryRule
from backend.profiles.layer import Layer
from backend.profiles.profile import ModelGraph, Profile

SHAPES = {
    "2 levels": ((2, 2), (2, 3), (3, 2)),
    "3 levels": ((2, 2, 2),),
    "unequal devices": ((3,), (4,), (2, 2)),
}
"""Members of each level of the clusters of a kind."""
LAYERS = {"3 levels": 3}
"""The most layers; 4 where none are named."""
BANDWIDTHS = (0.5, 1.0, 2.0, 5.0, 10.0, 20.0)
COSTS = ((0, 5), (0, 20), (1, 20))
"""Ranges of seconds and bytes."""


@dataclass(frozen=True, slots=True)
class Case:
    profile: Profile
    cluster: Cluster
    rule: MemoryRule | None


def drawn(kind: str, number: int, is_limited: bool = False) -> Case:
    """A case of one of the `SHAPES`; `is_limited`: with a memory limit. Every fifth cluster has
    faster links outside than inside."""
    chance = random.Random(f"{kind} {number} {is_limited}")
    shape = chance.choice(SHAPES[kind])
    bandwidths = [chance.choice(BANDWIDTHS) for _ in shape]
    if chance.random() < 0.8:
        bandwidths.sort(reverse=True)
    cluster = Cluster(tuple(map(Level, shape, bandwidths)))
    if kind == "unequal devices":
        speeds = [chance.choice((0.5, 1.0, 2.0)) for _ in range(cluster.num_devices)]
        devices = tuple(Device(speed=speed) for speed in speeds)
        cluster = replace(cluster, device=devices[0], devices=devices)
    rule = MemoryRule(float(chance.randint(40, 400)), PIPEDREAM) if is_limited else None
    return Case(_profile(chance, LAYERS.get(kind, 4)), cluster, rule)


def _profile(chance: random.Random, most: int) -> Profile:
    """A chain, or two times in five any graph; each cost is nothing now and then."""
    count = chance.randint(1, most)
    layers = tuple(
        Layer(f"l{n}", "Linear", 0.0, float(_cost(chance)), _cost(chance), _cost(chance))
        for n in range(count)
    )
    if chance.random() < 0.6:
        return Profile("drawn", ModelGraph.chain(layers), 1)
    pairs = [(a, b) for b in range(count) for a in range(b)]
    edges = tuple(sorted(pair for pair in pairs if chance.random() < 0.5))
    return Profile("drawn", ModelGraph(layers, edges), 1)


def _cost(chance: random.Random) -> int:
    return chance.choice((0, *(chance.randint(least, most) for least, most in COSTS)))

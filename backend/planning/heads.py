"""Two stages: the head of a model on most devices, and its heavy weights on the few that are left.

PipeDream's planner finds those with the smallest bottleneck within a limit of memory. These know
no limit: a search tries them under every schedule and with every way to save memory.
"""

from collections.abc import Iterator
from itertools import product

import numpy as np

from backend.cluster.cluster import Cluster, Device
from backend.planning.cost import Chain, cut_seconds, stage_seconds
from backend.planning.plan import Partition, Stage
from backend.profiles.profile import Profile

SINGLE = 4
"""Devices of the second stage up to which every number is tried; beyond, doubled ones."""


def heads(profile: Profile, cluster: Cluster) -> Iterator[Partition]:
    """For each number of devices of the second stage, up to half of all, the cut of the profile's
    own order with the smallest bottleneck on the slowest link: with all-reduces that overlap with
    compute, and that do not."""
    count, devices = len(profile.layers), range(cluster.num_devices)
    if count < 2:
        return
    chain = Chain(profile, Device(speed=min(device.speed for device in cluster.each)))
    bandwidth = cluster.slowest[-1]
    compute, weights = chain.compute[1:-1], chain.parameters[1:-1]
    cuts = cut_seconds(chain.exchanged[1:-1], bandwidth)
    for few, overlap in product(_counts(len(devices)), (True, False)):
        head = stage_seconds(compute, weights, len(devices) - few, bandwidth, overlap)
        rest, held = chain.compute[-1] - compute, chain.parameters[-1] - weights
        tail = stage_seconds(rest, held, few, bandwidth, overlap)
        stop = 1 + int(np.argmin(np.maximum.reduce([head, tail, cuts])))
        stages = Stage(0, stop, tuple(devices[:-few])), Stage(stop, count, tuple(devices[-few:]))
        yield Partition(stages)


def _counts(devices: int) -> Iterator[int]:
    """Of the second stage."""
    few = 1
    while few <= devices // 2:
        yield few
        few += 1 if few < SINGLE else few

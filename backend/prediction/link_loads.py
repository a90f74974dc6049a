"""How long the links that leave machines are busy with a plan's messages."""

from functools import lru_cache
from math import lcm

import numpy as np

from backend.cluster.cluster import Cluster
from backend.pipeline.actions import Flow, Message
from backend.planning.cost import Floats
from backend.planning.plan import Partition, Plan
from backend.prediction.durations import PlanDurations

KEPT = 1024
"""Partitions whose ways are remembered: schedules and sizes of microbatches go over the same."""
LONG = 4096
"""Channels of a cut above which its messages are not counted."""


def link_seconds(durations: PlanDurations, plan: Plan) -> float:
    """Seconds per microbatch for which the busiest link out of a machine, or into one, is busy with
    messages, as `ClusterLinks` shares it; no steady state is faster. 0 where replicas have shares,
    and where sites have links of their own. Sums of gradients are not counted."""
    cut, cluster = plan.partition, durations.cluster
    if len(cut.stages) == 1 or cut.shares or plan.is_apart or len(cluster.levels) == 1:
        return 0.0
    every, one_way = range(len(cut.stages) - 1), durations.one_way
    there = np.array([durations.message_bytes(Message(Flow.ACTIVATION, c, 0)) for c in every])
    back = np.array(
        [
            0 if one_way[c] else durations.message_bytes(Message(Flow.GRADIENT, c + 1, 0))
            for c in every
        ]
    )
    return max(
        max(float((there @ out + back @ into).max()), float((there @ into + back @ out).max()))
        for out, into in _ways(cut, cluster)
    )


@lru_cache(KEPT)
def _ways(cut: Partition, cluster: Cluster) -> tuple[tuple[Floats, Floats], ...]:
    """Of each size of machines, per cut and machine the seconds of a byte of every microbatch over
    the link out of it, and over that into it; what comes back goes over the other one."""
    sizes, rates = cluster.sizes[1:-1], np.array([level.bandwidth for level in cluster.levels])
    cuts = len(cut.stages) - 1
    found = tuple(
        (np.zeros((cuts, cluster.num_devices // n)), np.zeros((cuts, cluster.num_devices // n)))
        for n in sizes
    )
    places = [np.array(stage.devices) for stage in cut.stages]
    for number in filter(cut.crosses, range(cuts)):
        one, other = places[number], places[number + 1]
        if (count := lcm(len(one), len(other))) > LONG:
            continue
        turns = np.arange(count)
        here, there = one[turns % len(one)], other[turns % len(other)]
        climbed = sum((here // n != there // n).astype(np.int64) for n in sizes)
        for size, (out, into) in zip(sizes, found, strict=True):
            away = here // size != there // size
            seconds = 1 / rates[climbed[away]] / count
            machines = out.shape[1]
            out[number] = np.bincount(here[away] // size, seconds, machines)
            into[number] = np.bincount(there[away] // size, seconds, machines)
    return found

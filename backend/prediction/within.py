"""PipeDream's partition within the memory that a schedule needs there."""

from collections.abc import Sequence
from contextlib import suppress
from math import inf
from typing import Protocol

from backend.cluster.cluster import Cluster
from backend.pipeline.schedules.catalog import schedule as schedule_named
from backend.planning.downsets import Downsets, own_order
from backend.planning.memory import MemoryRule, extra_copies
from backend.planning.pipedream_dp import Optimum, optimum
from backend.planning.plan import Partition, PlanDoesNotFit
from backend.planning.pool import downsets
from backend.profiles.profile import Profile


class Asked(Protocol):
    @property
    def profile(self) -> Profile: ...
    @property
    def cluster(self) -> Cluster: ...
    @property
    def batch(self) -> int: ...
    @property
    def optimizer(self) -> str: ...


def partition_within(asked: Asked, schedule: str, recompute: bool = False) -> Partition:
    """The partition with the smallest bottleneck whose stages fit under `schedule`. Raises
    `PlanDoesNotFit` with the smallest excess."""
    return optimum_within(asked, schedule, recompute).partition


def optimum_within(asked: Asked, schedule: str, recompute: bool = False) -> Optimum:
    """The same with its bottleneck and proof."""
    rule = memory_rule(asked.cluster, schedule, asked.batch, asked.optimizer, recompute)
    return optimum(asked.profile, asked.cluster, memory=rule)


def partitions_within(asked: Asked, schedules: Sequence[str]) -> list[Partition]:
    """Those under each of `schedules`, the same memory asked about once; without those for
    which nothing fits. A graph with more cuts than are looked at is cut in its own order."""
    rules = {
        memory_rule(asked.cluster, name, asked.batch, asked.optimizer, recompute): None
        for name in schedules
        for recompute in (False, True)
    }
    cuts = downsets(asked.profile)
    if cuts is None:
        cuts = Downsets(asked.profile, own_order(len(asked.profile.layers)), complete=False)
    found: dict[Partition, None] = {}
    for rule in rules:
        with suppress(PlanDoesNotFit):
            found[optimum(asked.profile, asked.cluster, memory=rule, cuts=cuts).partition] = None
    return list(found)


def memory_rule(
    cluster: Cluster, schedule: str, batch: int, optimizer: str, recompute: bool = False
) -> MemoryRule | None:
    """What keeps a stage within a device's memory under `schedule`; None where no memory is
    known. 1F1B's bounds stand for every schedule but GPipe and those that stash; what another
    one holds beyond them, the prediction refuses."""
    sizes = [device.memory for device in cluster.each if device.memory is not None]
    if not sizes:
        return None
    limit = max(sizes) if len(sizes) == cluster.num_devices else inf
    rule = schedule_named(schedule)
    live = 2 if schedule == "2bw" else 1 if rule.flushes else 0
    return MemoryRule(
        limit,
        extra_copies(optimizer),
        live=live,
        batch=batch if rule.flushes else 0,
        recompute=recompute,
        whole=schedule == "gpipe",
    )

"""PipeDream's partition under the memory that a schedule needs: the memory-constrained planner."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import product
from math import inf
from typing import Protocol

from backend.cluster.cluster import Cluster
from backend.pipeline.schedules.catalog import schedule as schedule_named
from backend.planning.cost import ROUNDING
from backend.planning.memory import MemoryRule
from backend.planning.pipedream.bisection import Optimum
from backend.planning.pipedream.candidates import all_ideals
from backend.planning.pipedream.ideals import Ideals, own_order
from backend.planning.pipedream.planner import optimum
from backend.planning.plan import Partition, PlanDoesNotFit
from backend.planning.savings import MemorySaving, Savings
from backend.planning.work import SearchWork, WorkSpent
from backend.profiles.profile import Profile

NONE = Savings()
OPTIMUM = 60.0
"""Work per layer that a partition takes in any case."""
FEW = 64
"""Devices behind a stage up to which rules are compared one by one, and beyond at doubled numbers:
they hold what is in flight, which grows with the depth or does not."""


class PlanInputs(Protocol):
    @property
    def profile(self) -> Profile: ...
    @property
    def cluster(self) -> Cluster: ...
    @property
    def batch(self) -> int: ...
    @property
    def optimizer(self) -> str: ...
    @property
    def shard_state(self) -> MemorySaving: ...
    @property
    def run_ahead(self) -> int | None: ...


def memory_constrained_partition(
    asked: PlanInputs, schedule: str, savings: Savings = NONE, work: SearchWork | None = None
) -> Partition:
    """The partition with the smallest bottleneck whose stages fit under `schedule`. Raises
    `PlanDoesNotFit` with the smallest excess, and `WorkSpent`."""
    return memory_constrained_optimum(asked, schedule, savings, work).partition


def memory_constrained_optimum(
    asked: PlanInputs, schedule: str, savings: Savings = NONE, work: SearchWork | None = None
) -> Optimum:
    """The same with its bottleneck and proof."""
    rule = memory_rule(asked, schedule, savings)
    return optimum(asked.profile, asked.cluster, memory=rule, work=work)


def memory_constrained_partitions(
    asked: PlanInputs, schedules: Sequence[str], work: SearchWork
) -> list[Partition]:
    """Those under each of `schedules`, with and without recomputation, and with shared state where
    that is allowed; the same memory asked about once, and without those for which nothing fits. A
    graph with more cuts than are looked at is cut in its own order. Each may do two thirds of the
    `work` that is left; those for which it does not suffice are left out."""
    ways = [Savings(*each) for each in product((False, True), asked.shard_state.tries)]
    rules = {
        _bounds(rule, asked.cluster.num_devices): rule
        for name in schedules
        for savings in ways
        for rule in [memory_rule(asked, name, savings)]
    }
    cuts = all_ideals(asked.profile)
    if cuts is None:
        cuts = Ideals(asked.profile, own_order(len(asked.profile.layers)), complete=False)
    found: dict[Partition, None] = {}
    unlimited, loose = 0.0, set[object]()
    if any(rule and rule.sharded for rule in rules.values()):
        unlimited = optimum(
            asked.profile, asked.cluster, cuts=cuts, work=work.part(1 / (1 + len(rules)))
        ).seconds
    for key, rule in rules.items():
        if rule and _bounds(replace(rule, sharded=False), asked.cluster.num_devices) in loose:
            continue  # whole state does not make it slower
        if work.is_spent:
            break
        work.count(OPTIMUM * len(asked.profile.layers))
        part = work.part(2 / 3)
        with suppress(PlanDoesNotFit, WorkSpent):
            best = optimum(asked.profile, asked.cluster, True, rule, cuts, False, part)
            found[best.partition] = None
            if best.seconds <= unlimited * (1 + ROUNDING):
                loose.add(key)
    return list(found)


def memory_rule(asked: PlanInputs, schedule: str, savings: Savings = NONE) -> MemoryRule | None:
    """What keeps a stage within a device's memory under `schedule`; None where no memory is
    known."""
    cluster = asked.cluster
    sizes = [device.memory for device in cluster.each if device.memory is not None]
    if not sizes:
        return None
    return MemoryRule(
        max(sizes) if len(sizes) == cluster.num_devices else inf,
        schedule_named(schedule),
        asked.optimizer,
        asked.batch,
        savings.recompute,
        precision=asked.profile.state_precision,
        sharded=savings.shard_state,
        process=asked.profile.process_bytes,
        run_ahead=asked.run_ahead or 0,
    )


def _bounds(rule: MemoryRule | None, devices: int) -> object:
    """What `rule` says of straight pipelines of up to so many devices: equal for schedules that
    hold the same."""
    if rule is None:
        return None
    longest = replace(rule, total=devices)
    doubled = (2**n for n in range(FEW.bit_length(), devices.bit_length()))
    behind = dict.fromkeys((*range(min(devices, FEW)), *doubled, devices - 1))
    held = tuple((rule.holds(1, after), longest.holds(1, after)) for after in behind)
    return rule.recompute, rule.sharded, held

"""What moving one layer to a neighbouring stage would change: the reasons behind a partition."""

from collections.abc import Iterator
from dataclasses import replace

from backend.cluster.cluster import Cluster
from backend.planning.memory import check_memory, memory_parts, smallest_devices
from backend.planning.pipedream.bottleneck import CostModel
from backend.planning.plan import Plan, PlanDoesNotFit, Stage
from backend.prediction.shapes import steady_shape
from backend.profiles.profile import Profile
from backend.units import bytes_text, seconds_text


def sensitivity(profile: Profile, cluster: Cluster, plan: Plan, optimizer: str) -> tuple[str, ...]:
    """A sentence for each side of the slowest stage: how its bottleneck (by PipeDream's cost
    model) and the bytes over the cut change with one layer less, and whether that still fits
    the devices' memory. None for a single stage."""
    partition = plan.partition
    ordered = profile.in_order(partition.order)
    judge = CostModel(ordered, cluster)
    stages = partition.stages
    worst = max(range(len(stages)), key=lambda number: judge.stage(stages[number]))
    now = judge.pipeline(stages)
    found = []
    for other, changed in _changed(stages, worst):
        layer, more = _moved(ordered, stages[worst], is_first=other < worst)
        then = judge.pipeline(changed)
        found.append(
            f"Moving layer {layer} to stage {other} would send {_than_now(more)} "
            f"{'each way' if ordered.graph.is_two_way else 'forward'} per microbatch and "
            f"{_changes(seconds_text(now), seconds_text(then))}"
            f"{_too_much(profile, cluster, plan, changed, optimizer)}."
        )
    return tuple(found)


def _than_now(more: int) -> str:
    return f"{bytes_text(abs(more))} {'more' if more > 0 else 'less'}" if more else "as much"


def _changes(now: str, then: str) -> str:
    if now == then:
        return f"leave the bottleneck at {now}"
    return f"change the bottleneck from {now} to {then}"


def _too_much(
    profile: Profile, cluster: Cluster, plan: Plan, stages: tuple[Stage, ...], optimizer: str
) -> str:
    """Why the plan with these stages does not fit; "" where it does."""
    moved = replace(plan, partition=replace(plan.partition, stages=stages))
    held = memory_parts(profile, moved, steady_shape(moved), optimizer)
    try:
        check_memory(held, smallest_devices(cluster, moved.partition))
    except PlanDoesNotFit as fault:
        return f", but {fault}"
    return ""


def _moved(profile: Profile, stage: Stage, is_first: bool) -> tuple[str, int]:
    """The first or last layer of `stage`, and how many bytes more cross the cut without it."""
    cuts = profile.graph.cut_bytes
    if is_first:
        return profile.layers[stage.first].name, cuts[stage.first] - cuts[stage.first - 1]
    return profile.layers[stage.stop - 1].name, cuts[stage.stop - 2] - cuts[stage.stop - 1]


def _changed(stages: tuple[Stage, ...], worst: int) -> Iterator[tuple[int, tuple[Stage, ...]]]:
    """The neighbour that takes a layer of the slowest stage, and the stages then."""
    stage = stages[worst]
    if stage.stop - stage.first < 2:
        return
    if worst > 0:
        before = replace(stages[worst - 1], stop=stage.first + 1)
        smaller = replace(stage, first=stage.first + 1)
        yield worst - 1, (*stages[: worst - 1], before, smaller, *stages[worst + 1 :])
    if worst + 1 < len(stages):
        after = replace(stages[worst + 1], first=stage.stop - 1)
        smaller = replace(stage, stop=stage.stop - 1)
        yield worst + 1, (*stages[:worst], smaller, after, *stages[worst + 2 :])

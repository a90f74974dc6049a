"""What moving one layer to a neighbouring stage would change: the reasons behind a partition."""

from collections.abc import Callable, Iterator
from dataclasses import replace

from backend.cluster.cluster import Cluster
from backend.errors import StageflowError
from backend.planning.memory import replica_parts
from backend.planning.plan import Plan, PlanDoesNotFit, Stage
from backend.planning.room import check_memory
from backend.prediction.bottleneck import busiest, loads
from backend.prediction.durations import PlanDurations
from backend.prediction.prediction import Prediction
from backend.prediction.shapes import steady_shape
from backend.profiles.profile import Profile
from backend.units import bytes_text, seconds_text

Simulated = Callable[[Plan], Prediction]


def sensitivity(
    profile: Profile,
    cluster: Cluster,
    plan: Plan,
    optimizer: str,
    simulated: Simulated | None = None,
) -> tuple[str, ...]:
    """A sentence for each side of the slowest stage: how the bottleneck (the most loaded stage,
    link or host) and the bytes over the cut change with one layer less, and whether that still
    fits the devices' memory; the rates where the bottleneck falls and the plan is no faster when it
    is `simulated`. None for a single stage."""
    partition = plan.partition
    ordered = profile.in_order(partition.order)
    stages = partition.stages
    durations, shape = _durations(profile, cluster, plan), steady_shape(plan)
    of_stages = [load.seconds for load in loads(durations, plan, shape) if load.of == "stage"]
    worst = max(range(len(stages)), key=of_stages.__getitem__)
    now = busiest(durations, plan, shape)
    found = []
    for other, changed in _changed(stages, worst):
        moved = replace(plan, partition=replace(partition, stages=changed))
        layer, sent, more = _moved(ordered, stages[worst], is_first=other < worst)
        then = busiest(_durations(profile, cluster, moved), moved, steady_shape(moved))
        but = _too_much(profile, cluster, moved, optimizer)
        if not but and simulated and then < now:
            but = _slower(simulated, plan, moved)
        found.append(
            f"Moving layer {layer} to stage {other} would send {_than_now(sent, more)} "
            f"{'each way' if ordered.graph.is_two_way else 'forward'} per microbatch and "
            f"{_changes(seconds_text(now), seconds_text(then))}{but}."
        )
    return tuple(found)


def _durations(profile: Profile, cluster: Cluster, plan: Plan) -> PlanDurations:
    return PlanDurations.of(profile, cluster, plan)


def _than_now(sent: int, more: int) -> str:
    """`more` bytes beside those that the cut sends now; less than a hundredth is no difference."""
    if abs(more) * 100 < max(sent, sent + more):
        return "about as much" if more else "as much"
    return f"{bytes_text(abs(more))} {'more' if more > 0 else 'less'}"


def _changes(now: str, then: str) -> str:
    if now == then:
        return f"leave the bottleneck at {now}"
    return f"change the bottleneck from {now} to {then}"


def _too_much(profile: Profile, cluster: Cluster, moved: Plan, optimizer: str) -> str:
    """Why the plan does not fit; "" where it does."""
    held = replica_parts(profile, moved, steady_shape(moved), optimizer)
    try:
        check_memory(held, cluster, moved.partition)
    except PlanDoesNotFit as fault:
        return f", but {fault}"
    return ""


def _slower(simulated: Simulated, plan: Plan, moved: Plan) -> str:
    """The rates of both, where `moved` is no faster."""
    try:
        now, then = (simulated(each).samples_per_second for each in (plan, moved))
    except StageflowError as fault:
        return f", but {fault}"
    if then > now:
        return ""
    return f"; simulated it is no faster: {then:,.0f} in place of {now:,.0f} samples/s"


def _moved(profile: Profile, stage: Stage, is_first: bool) -> tuple[str, int, int]:
    """The first or last layer of `stage`, the bytes that cross the cut now, and how many more
    cross it without that layer."""
    cuts = profile.graph.cut_bytes
    layer = stage.first if is_first else stage.stop - 1
    now, then = (layer - 1, layer) if is_first else (layer, layer - 1)
    return profile.layers[layer].name, cuts[now], cuts[then] - cuts[now]


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

"""Plans within a memory limit: side by side, or one pipeline copied over machines."""

from contextlib import suppress
from dataclasses import replace
from math import inf

from backend.cluster.cluster import Cluster
from backend.planning.pipedream.bisection import Optimum, improved
from backend.planning.pipedream.feasibility import feasible
from backend.planning.pipedream.plan_space import PlanSpace
from backend.planning.pipedream.variants import with_variants
from backend.planning.plan import Partition, PlanDoesNotFit
from backend.planning.work import WorkSpent
from backend.units import bytes_text


def constrained(space: PlanSpace, bound: float) -> Optimum:
    """The best plan of `space` that fits its memory; no plan is faster than `bound`. Raises
    `PlanDoesNotFit`, and `WorkSpent` where neither a plan nor that there is none was found."""
    found: list[Optimum] = []
    part, proved = space.with_share(0.4), bound
    with suppress(WorkSpent):
        if start := _first_that_fits(part):
            found.append(improved(part, start, space.seconds(start), bound))
            proved = found[0].lower_bound
    for level in range(1, len(space.cluster.levels)):
        with suppress(WorkSpent):
            if copied := _copied(space.with_share(0.4), level):
                found.append(Optimum(copied, space.seconds(copied), bound))
    if not found:
        if part.work.is_short:
            raise WorkSpent("planning reached its limit before it had a plan that fits")
        if space.tells_excess:
            with suppress(WorkSpent):
                raise _does_not_fit(space)
        raise PlanDoesNotFit("no partition fits")
    fastest = min(found, key=lambda one: one.seconds)
    best = with_variants(space.with_share(0.6), replace(fastest, lower_bound=bound))
    return replace(best, lower_bound=proved if space.is_exact else bound)


def _copied(space: PlanSpace, level: int) -> Partition | None:
    """The best pipeline of one member of `level`, on each of them; microbatch k goes to
    replica k mod r, and so stays within one copy all the way."""
    cluster, block = space.cluster, space.cluster.sizes[level]
    if not cluster.is_uniform:
        return None
    inside = replace(space, cluster=Cluster(cluster.levels[:level], cluster.each[0]))
    start = _first_that_fits(inside)
    if start is None:
        return None
    best = improved(inside, start, inside.seconds(start), 0.0).partition
    members = range(0, cluster.num_devices, block)
    stages = (
        replace(stage, devices=tuple(first + d for d in stage.devices for first in members))
        for stage in best.stages
    )
    return replace(best, stages=tuple(stages))


def _first_that_fits(space: PlanSpace) -> Partition | None:
    """Some plan that keeps within the memory, however slow."""
    pieces = feasible(space, _any_time(space))
    return None if pieces is None else space.partition(pieces)


def _any_time(space: PlanSpace) -> float:
    """Seconds within which every stage and every cut stays."""
    profile = space.ideals.profile
    moved = profile.parameter_bytes + sum(layer.output_bytes for layer in profile.layers)
    return float(2 * (space.compute[-1] + 4 * moved / min(space.cluster.slowest)))


def _does_not_fit(space: PlanSpace) -> PlanDoesNotFit:
    """The error with the smallest memory of all devices in which there is a plan, by bisection."""
    assert space.memory is not None
    memory, cluster, limit = space.memory, space.cluster, _any_time(space)
    each = tuple(replace(device, memory=None) for device in cluster.each)
    there = min([memory.limit, *(device.memory or inf for device in cluster.each)])

    def fits(size: float) -> bool:
        like = replace(cluster, device=each[0], devices=each if cluster.devices else ())
        asked = replace(space, cluster=like, memory=replace(memory, limit=size))
        return feasible(asked, limit) is not None

    low, high = there, max(2 * there, 1024.0)
    while not fits(high):
        low, high = high, 2 * high
    while high - low > max(1.0, high / 4096):
        middle = (low + high) / 2
        low, high = (low, middle) if fits(middle) else (middle, high)
    return PlanDoesNotFit(
        f"no partition of {space.ideals.profile.name} fits on {cluster.num_devices} "
        f"devices of {bytes_text(there)}{'' if cluster.is_uniform else ' or more'}: the smallest "
        f"needs {bytes_text(high)}, {bytes_text(high - there)} too much",
        "Recompute activations, keep fewer microbatches in flight (a smaller batch or a flush), "
        "use 2BW's two weight versions, a smaller microbatch, state in bfloat16, or more devices "
        "for more stages.",
    )

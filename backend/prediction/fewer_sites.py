"""By what a training on sites goes on when machines of some are lost: the same on fewer sites."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate, pairwise

from backend.planning.plan import Plan, PlanDoesNotFit
from backend.prediction.question import Question

FEWER_SITES = (
    "It begins from the weights that the sites have in common, and learns from then on as a "
    "training on fewer sites does"
)
"""What people should know of such a plan."""


def sites_left(plan: Plan, sizes: Sequence[int], lost: Sequence[int]) -> tuple[int, ...]:
    """The sites of `plan` none of whose machines is lost; machines have so many devices each."""
    firsts = (0, *accumulate(sizes))
    gone = {device for n in lost for device in range(firsts[n], firsts[n + 1])}
    each = plan.partition.num_devices
    return tuple(
        site
        for site in range(plan.num_sites)
        if not gone.intersection(plan.devices[site * each : (site + 1) * each])
    )


def on_fewer_sites(
    question: Question, plan: Plan, sizes: Sequence[int], lost: Sequence[int]
) -> tuple[Plan, float]:
    """`plan` on sites that are left, on devices numbered through without those of `lost` machines;
    and its predicted samples/s. As many sites as their number before is a multiple of, so that an
    epoch has the same samples. Raises `PlanDoesNotFit` where none is left, or where machines of a
    lost site stand between them."""
    left, before = sites_left(plan, sizes, lost), plan.num_sites
    counts = [n for n in range(1, len(left) + 1) if before % n == 0]
    if not counts:
        raise PlanDoesNotFit(f"each of the {before} sites has lost a machine")
    count, each = counts[-1], plan.partition.num_devices
    renumbered = _renumbered(sizes, lost)
    starts = [renumbered[plan.devices[site * each]] - plan.devices[0] for site in left[:count]]
    gaps = {b - a for a, b in pairwise(starts)}
    if len(gaps) > 1:
        raise PlanDoesNotFit(
            "machines of a lost site stand between the sites that are left",
            "Launch with sites of one machine each.",
        )
    # sites are alike, so those that are left do what the first ones would
    like = _on(plan, count, 0, plan.sites.devices if plan.sites else 0)
    rate = question.predict(like).samples_per_second
    return _on(plan, count, starts[0], next(iter(gaps), 0)), rate


def _renumbered(sizes: Sequence[int], lost: Sequence[int]) -> dict[int, int]:
    """By the number of each device that is left, that which it has then."""
    firsts = (0, *accumulate(sizes))
    kept = [n for n in range(len(sizes)) if n not in lost]
    left = [device for n in kept for device in range(firsts[n], firsts[n + 1])]
    return {device: number for number, device in enumerate(left)}


def _on(plan: Plan, count: int, first: int, apart: int) -> Plan:
    """The same on `count` sites, whose devices begin `first` behind those of the plan's first."""
    stages = tuple(
        replace(stage, devices=tuple(device + first for device in stage.devices))
        for stage in plan.partition.stages
    )
    partition = replace(plan.partition, stages=stages)
    sites = replace(plan.sites, devices=apart) if plan.sites and count > 1 else None
    return replace(plan, partition=partition, num_pipelines=count, sites=sites)

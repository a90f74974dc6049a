"""The best plans for what is left of a cluster when machines go, computed before any goes."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from itertools import accumulate, combinations, pairwise
from math import comb

from backend.cluster.cluster import Cluster
from backend.cluster.fewer import without
from backend.errors import InvalidInput, StageflowError
from backend.pipeline.schedules.catalog import schedule as schedule_named
from backend.planning.plan import Plan
from backend.prediction.fallback import Fallback
from backend.prediction.fewer_sites import on_fewer_sites
from backend.prediction.question import Question
from backend.prediction.search import search
from backend.prediction.shapes import microbatch_unit
from backend.prediction.watch import UNWATCHED, Watch

MOST_LOST = 2
MOST_SETS = 64
"""Sets of lost machines that are planned for one by one, where the machines differ."""
IN_PLACE = "The order that the plan keeps is of all its ranks; on fewer there is in its place "
FOUND_ANEW = "an order that is found for those that are left"
FEW = 8
"""Machines of which every number is tried: those that stay need not all be used."""


def fallbacks(
    question: Question, plan: Plan, sizes: Sequence[int], watch: Watch = UNWATCHED
) -> tuple[Fallback, ...]:
    """The fallbacks of `plan` without one machine and without two; () for a single machine. Sites
    go on without those that lost a machine. In place of an order that was brought there is the
    fastest schedule that makes the same updates; one that was found is also found anew.
    `question.cluster` has machines of so many devices each. Raises `InvalidInput` where its devices
    are others, or `plan` is not one for it."""
    cluster, num = question.cluster, len(sizes)
    if sum(sizes) != cluster.num_devices:
        raise InvalidInput(
            f"machines of {', '.join(map(str, sizes))} devices are not the plan's "
            f"{cluster.num_devices} devices",
            "Plan for the cluster of these nodes.",
        )
    if num == 1:
        return ()
    full = question.predict(plan).samples_per_second
    asked = replace(
        question,
        profile=question.at(plan.microbatch),
        planner="best",
        schedule="",
        batch=plan.batch,
        pipelines=plan.num_pipelines,
        like=plan,
    )

    @cache
    def best(left: Cluster) -> Fallback:
        return _best(replace(asked, cluster=left), full, watch)

    def without_these(lost: tuple[int, ...]) -> Fallback:
        if plan.is_apart:
            return _on_fewer_sites(question, plan, sizes, lost, full)
        tried = [best(left) for left in _parts(cluster, sizes, lost, microbatch_unit(plan))]
        return max(tried, key=lambda each: each.factor)  # the first one where none fits

    def anew(lost: tuple[int, ...]) -> Fallback:
        left = without(cluster, sizes, lost)
        straight = replace(asked, cluster=left, planner="straight", schedule=plan.schedule)
        return _best(straight, full, watch)

    one_each = plan.sites is None or set(sizes) == {plan.sites.devices}
    alike = _are_alike(cluster, sizes) and (one_each or not plan.is_apart)
    found: list[tuple[tuple[int, ...], Fallback]] = []
    for count in range(1, min(MOST_LOST, num - 1) + 1):
        if not alike and comb(num, count) > MOST_SETS:
            break
        for lost in [tuple(range(num - count, num))] if alike else combinations(range(num), count):
            found.append((lost, without_these(lost)))
    if schedule_named(plan.schedule).planned_as:  # afterwards, for it takes seconds each
        found = [(lost, max(one, anew(lost), key=lambda each: each.factor)) for lost, one in found]
    instead = schedule_named(plan.schedule).kept
    return tuple(
        replace(
            one,
            count=len(lost),
            lost=() if alike else lost,
            instead=one.plan.schedule if one.plan and instead else "",
        )
        for lost, one in found
    )


def order_words(found: Iterable[Fallback]) -> str:
    """What there is in place of an order that a plan keeps, for people; "" where it keeps none."""
    names = dict.fromkeys(each.instead for each in found if each.instead)
    told = [FOUND_ANEW if schedule_named(n).planned_as else f"schedule {n}" for n in names]
    return IN_PLACE + " or ".join(told) if told else ""


def _parts(
    cluster: Cluster, sizes: Sequence[int], lost: tuple[int, ...], whole: int
) -> Iterator[Cluster]:
    """What is left, then its first machines: every number of a few; of many the most whose devices
    share a round of so many microbatches evenly."""
    kept = [number for number in range(len(sizes)) if number not in lost]
    yield without(cluster, sizes, lost)
    for used in range(len(kept) - 1, 0, -1):
        is_even = whole % sum(sizes[number] for number in kept[:used]) == 0
        if is_even or len(kept) <= FEW:
            yield without(cluster, sizes, (*lost, *kept[used:]))
            if len(kept) > FEW:
                return


def _best(question: Question, full: float, watch: Watch) -> Fallback:
    try:
        found = search(question.planner, question, watch)
    except StageflowError as fault:
        return Fallback(0, fault=str(fault))
    if not question.admits(found.plan):
        return Fallback(0, fault=f"plan {found.plan.label} makes other updates")
    return Fallback(0, plan=found.plan, factor=found.samples_per_second / full if full else 0.0)


def _on_fewer_sites(
    question: Question, plan: Plan, sizes: Sequence[int], lost: Sequence[int], full: float
) -> Fallback:
    try:
        left, rate = on_fewer_sites(question, plan, sizes, lost)
    except StageflowError as fault:
        return Fallback(0, fault=str(fault))
    factor = rate / full if full else 0.0
    return Fallback(0, plan=left, factor=factor, sites=left.num_pipelines)


def _are_alike(cluster: Cluster, sizes: Sequence[int]) -> bool:
    """Whether it is all the same which machine goes."""
    firsts = (0, *accumulate(sizes))
    each = [cluster.each[first:stop] for first, stop in pairwise(firsts)]
    return len(set(each)) == 1

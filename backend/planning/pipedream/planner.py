"""PipeDream's planner: the partition with the smallest bottleneck, exact and with its proof.

The paper (Narayanan et al., SOSP 2019, section 3.1) fills a table over layers i..j and a number m
of workers, at each level k of the cluster, innermost first:

    A^0(i..j)    = compute of layers i..j
    T^k(i..j, m) = 1/m max( A^(k-1)(i..j), 2 (m-1) |w| / B_k )                a stage on m members
    A^k(i..j, m) = min over s, m' of max( A^k(i..s, m - m'), 2 a_s / B_k, T^k(s+1..j, m') )

and the plan is that of A^L(1..N, all workers). `tests/oracles/pipedream.py` says so in 60 lines: a
newcomer reads it first, and tests hold this planner against it. What is changed, and gained
(docs/evidence/planner.md and docs/decisions/0002-cost-model.md have the figures):

- The question is whether a plan takes at most T seconds (`feasibility`); the smallest T is found
  by `bisection`. No table over layers x layers x workers is filled, and the last question just
  below the best plan proves it: the 74 published runs take 0.8 s of CPU in place of 385 s.
- A cut is an order ideal of the graph, and its bytes are those of all tensors alive across it
  (`ideals`); graphs with too many have the cheapest found by flows (`least_cuts`), or like ones
  merged (`partial_order`, `decomposition`, `candidates`). The paper cuts a chain.
- A stage takes any neighbouring devices, so that it may span machines by part, and devices may
  stay idle (`bottleneck`): VGG-16's 15-1 on 4 servers of 4.
- A ring moves 4 (m-1)/m |w| over a link, both directions counted (`backend.planning.cost`).
- On several levels stages stand where it is best (`any_order`, `packing`): the bound is that of
  all plans (`proof`).
- Every stage keeps within its devices' memory under the schedule that will run
  (`memory_constrained`); devices may differ (`device_orders`), and of few devices every set is
  looked at for every stage (`every_set`, `drawn_plans`).
"""

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from functools import cache, partial
from operator import mul

import numpy as np

from backend.cluster.cluster import Cluster
from backend.planning.baselines import data_parallel
from backend.planning.cost import ROUNDING, floor_seconds
from backend.planning.memory import MemoryRule
from backend.planning.pipedream.bisection import CLOSE_BOUND, Optimum, improved, infeasible_below
from backend.planning.pipedream.bottleneck import bottleneck
from backend.planning.pipedream.candidates import MOST, Candidates, Cells, all_ideals
from backend.planning.pipedream.device_orders import device_orders, permuted, with_own_numbers
from backend.planning.pipedream.drawn_plans import best_on_few
from backend.planning.pipedream.ideals import Ideals, own_order
from backend.planning.pipedream.least_cuts import COMPUTE, OUTPUTS, LeastCuts, least_cuts
from backend.planning.pipedream.memory_constrained import constrained
from backend.planning.pipedream.plan_space import PlanSpace
from backend.planning.pipedream.proof import anywhere, proved
from backend.planning.pipedream.tie_breaking import tidy
from backend.planning.plan import Partition, PlanDoesNotFit
from backend.planning.work import SearchWork, WorkSpent
from backend.profiles.profile import Profile

NEAR = 1e-3
"""A plan whose gap is no larger is not improved on where there are too many cuts for a proof."""
FEWER = 400
"""Cuts under a memory limit where not all are looked at anyway: each costs more there."""
IN_ORDER, FIRST = 0.4, 0.7
"""Of the work for stages in the order of the devices, where they need not be and all cuts are
looked at; and where there are too many cuts for that."""
FOR_BOUND = 0.3
"""Of the work that is left for a bound by cells of like cuts."""
COARSE = 100
"""Cells of like cuts, where a question about all cuts takes long."""
IN_SOME_ORDER = 0.6
"""Of the work for unequal devices in some orders; the rest is for others."""
MANY = 1_000_000
"""Cuts times devices above which not all are looked at under a memory limit."""


def pipedream(profile: Profile, cluster: Cluster) -> Partition:
    """The partition with the smallest bottleneck of all on `cluster` (SOSP 2019, section 3.1).

    Cuts are nested ideals of the graph; stages follow each other device by device, and may
    span machines; pipelines may be copied over machines. Raises `PlanDoesNotFit`.
    """
    return optimum(profile, cluster).partition


def optimum(
    profile: Profile,
    cluster: Cluster,
    overlap: bool = True,
    memory: MemoryRule | None = None,
    cuts: Ideals | None = None,
    tells_excess: bool = True,
    work: SearchWork | None = None,
) -> Optimum:
    """The best partition, with its bottleneck and a lower bound to all others.

    Devices may stay idle. Of equal plans: the fewest stages, as each keeps one more weight
    version, then idle devices join a stage that they do not slow. Unequal devices are taken in
    some orders (`device_orders`), and few in all (`drawn_plans`); the bound holds for all. Raises
    `PlanDoesNotFit` where nothing keeps within `memory`: with the smallest excess, unless not
    `tells_excess`; and `WorkSpent` where the `work` did not suffice for any plan. Where it did not
    suffice for the best one, the gap is larger.
    """
    work = work or SearchWork()
    best: Optimum | None = None
    fault: PlanDoesNotFit | WorkSpent | None = None
    try:
        best = _in_orders(profile, cluster, overlap, memory, cuts, tells_excess, work)
    except (PlanDoesNotFit, WorkSpent) as none:
        fault = none
    is_flat = len(cluster.levels) == 1
    if not cluster.is_uniform or not (is_flat or best is None or best.gap <= CLOSE_BOUND):
        every = cuts or all_ideals(profile) or _in_own_order(profile)
        best = best_on_few(PlanSpace(every, cluster, overlap, memory, work=work), best)
    if best is None:
        raise fault or PlanDoesNotFit("no partition fits")
    return best


def _in_orders(
    profile: Profile,
    cluster: Cluster,
    overlap: bool,
    memory: MemoryRule | None,
    cuts: Ideals | None,
    tells_excess: bool,
    work: SearchWork,
) -> Optimum:
    """The best plan on neighbouring devices, in some orders of them. Raises as `optimum` does."""
    found: list[Optimum] = []
    faults: list[PlanDoesNotFit | WorkSpent] = []
    orders = list(device_orders(cluster))
    for number, order in enumerate(orders):
        part = work.part((1 if cluster.is_uniform else IN_SOME_ORDER) / (len(orders) - number))
        try:
            best = _optimum(
                profile, permuted(cluster, order), overlap, memory, cuts, tells_excess, part
            )
        except (PlanDoesNotFit, WorkSpent) as fault:
            faults.append(fault)
            continue
        found.append(replace(best, partition=with_own_numbers(best.partition, order)))
    if not found:
        raise faults[0]
    return min(found, key=lambda one: one.seconds)


def _in_own_order(profile: Profile) -> Ideals:
    return Ideals(profile, own_order(len(profile.layers)), complete=False)


def _optimum(
    profile: Profile,
    cluster: Cluster,
    overlap: bool,
    memory: MemoryRule | None,
    cuts: Ideals | None,
    tells_excess: bool,
    work: SearchWork,
) -> Optimum:
    """The same for the devices in the cluster's order."""
    bound = floor_seconds(profile, cluster, overlap)
    single = data_parallel(profile, cluster)
    seconds = bottleneck(profile, cluster, single, overlap)
    is_best = seconds <= bound * (1 + ROUNDING)
    if is_best and (memory is None or memory.fits(profile, cluster, single)):
        return Optimum(single, seconds, seconds)

    in_order = cluster.is_uniform and len(cluster.levels) > 1
    cuts = cuts or all_ideals(profile)
    part = work.part(IN_ORDER if cuts else FIRST) if in_order else work
    by = COMPUTE if memory is None else OUTPUTS

    def space(cuts: Ideals | Cells, relaxed: bool = False, work: SearchWork = part) -> PlanSpace:
        return PlanSpace(cuts, cluster, overlap, memory, relaxed, tells_excess, work)

    whole = partial(space, work=work)
    if cuts:
        best = _among(space(cuts), single, bound)
        every, proofs = cuts, _like_cuts(whole, cuts, by)
    else:
        least, listed = least_cuts(profile, by=by), cache(partial(Candidates.of, profile))
        best = _among_many(space, least, listed, single, bound, memory is not None)
        every, proofs = least.ideals, _all_cuts(whole, least, listed, best.seconds)
    if not in_order:
        return best
    if not every.complete and len(every) * cluster.num_devices > MANY:
        every = every.lightest(FEWER)
    return anywhere(whole(every), proofs, best)


def _like_cuts(space: Callable[..., PlanSpace], cuts: Ideals, by: int) -> Iterator[PlanSpace]:
    """A few cells of like cuts where there are many cuts, then each by itself if all are there."""
    if len(cuts) > 2 * COARSE:
        yield space(least_cuts(cuts.profile, COARSE, by).cells, relaxed=True)
    if cuts.complete:
        yield space(cuts)


def _all_cuts(
    space: Callable[..., PlanSpace],
    least: LeastCuts,
    listed: Callable[[], Candidates],
    seconds: float,
) -> Iterator[PlanSpace]:
    """Cells of like cuts that no plan within `seconds` escapes, coarse and then fine; all the cuts
    that are light enough, if they are few."""
    yield space(least.cells, relaxed=True)
    candidates = listed()
    if not candidates.is_whole:
        return
    cluster = space(least.ideals).cluster
    members = (cluster.num_devices / size for size in cluster.sizes[1:])
    widest = max(map(mul, members, cluster.slowest))
    light = candidates.with_cuts_up_to(seconds * widest * (1 + ROUNDING))
    if len(light) <= MOST and candidates.is_exact:
        yield space(candidates.ideals(light, complete=True))
    else:
        yield space(candidates.cells(light, MOST), relaxed=True)


def _among(space: PlanSpace, start: Partition, bound: float) -> Optimum:
    """The best plan of `space`, `start` (which may not fit) or another; its bound holds for all
    plans."""
    share = 1.0 if space.memory is None else 0.3
    free = replace(space, memory=None, work=space.work.part(share))
    best = improved(free, start, free.seconds(start), bound)
    bound = best.lower_bound if space.is_exact else bound
    profile, cluster, memory = space.ideals.profile, space.cluster, space.memory
    plan = tidy(profile, cluster, best.partition, best.seconds, space.overlap)
    if memory is None or memory.fits(profile, cluster, plan):
        return Optimum(plan, best.seconds, bound)
    if isinstance(space.ideals, Ideals) and len(space.ideals) * cluster.num_devices > MANY:
        space = replace(space, ideals=space.ideals.lightest(FEWER))
    return constrained(space, bound)


def _among_many(
    space: Callable[..., PlanSpace],
    least: LeastCuts,
    listed: Callable[[], Candidates],
    start: Partition,
    bound: float,
    is_constrained: bool,
) -> Optimum:
    """The best plan found where there are too many cuts to look at each, until one is `NEAR` the
    bound.

    First those of the profile's own order, and the cheapest ones. Then all, where they can be
    listed or merged; the time below which even cells of like cuts admit no plan is the bound.
    """
    own = _in_own_order(least.cells.profile)
    best = _among(space(own.lightest(FEWER) if is_constrained else own), start, bound)
    with suppress(WorkSpent, PlanDoesNotFit):
        if best.gap > NEAR:
            best = _proved(space(least.cells, relaxed=True), best)
        if best.gap > NEAR and not is_constrained:
            best = _faster(best, _among(space(least.ideals), start, best.lower_bound))
        if best.gap > NEAR and listed().is_whole:
            found = _among_listed(space, listed(), best, start, is_constrained)
            best = _faster(best, found)
    return best


def _faster(best: Optimum, found: Optimum) -> Optimum:
    """The faster one of two, with the higher bound."""
    bound = max(best.lower_bound, found.lower_bound)
    faster = min(found, best, key=lambda one: one.seconds)
    return replace(faster, lower_bound=min(bound, faster.seconds))


def _among_listed(
    space: Callable[..., PlanSpace],
    candidates: Candidates,
    best: Optimum,
    start: Partition,
    is_constrained: bool,
) -> Optimum:
    """The best plan among those cuts that are light enough for one faster than `best`: all, where
    they are few, and the plan is proved. Else among some that stand for others."""
    most = FEWER if is_constrained else MOST
    first = space(candidates.thinned(np.arange(len(candidates)), most))
    best = _faster(best, _among(first, start, best.lower_bound))
    fastest = max(level.bandwidth for level in first.cluster.levels)
    light = candidates.with_cuts_up_to(best.seconds * fastest * (1 + ROUNDING))
    start = start if is_constrained else best.partition
    if len(light) <= MOST and candidates.is_exact:
        return _among(space(candidates.ideals(light, complete=True)), start, best.lower_bound)
    second = _among(space(candidates.thinned(light, most)), start, best.lower_bound)
    best = _faster(best, second)
    return _proved(space(candidates.cells(light, most), relaxed=True), best)


def _proved(cells: PlanSpace, best: Optimum) -> Optimum:
    """`best` with the bound below which `cells` admit no plan, where that is higher."""
    if not cells.cluster.is_uniform:
        return best
    if len(cells.cluster.levels) > 1:
        return proved(cells.with_share(FOR_BOUND), best)
    return replace(best, lower_bound=infeasible_below(cells, best.lower_bound, best.seconds))

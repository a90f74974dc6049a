"""Plans whose replicas take microbatches in proportion to what they do in a second (AccPar)."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import combinations, islice, pairwise, permutations, product
from math import gcd, prod

from backend.cluster.cluster import Cluster
from backend.pipeline.schedules.catalog import schedule as schedule_named
from backend.pipeline.shares import Shares, shares
from backend.planning.plan import Plan, Stage
from backend.profiles.profile import Profile

FEW = 64
"""Ways to share a batch among the replicas of all stages up to which every one is tried."""


def shared_out(plan: Plan, cluster: Cluster, profile: Profile | None = None) -> Plan:
    """The same with shares of its batch wherever a stage mixes devices of unequal speed; as it is
    where none does, or where schedule and shape take no shares.

    A stage takes C m / sum of speeds where whole microbatches allow it (Song et al., HPCA 2020),
    and not C m / (r times the slowest). With a `profile` of the plan's microbatches a replica whose
    messages take longer than its compute counts with those. A replica that would get nothing leaves
    its stage with equal shares.
    """
    if not _may_share(plan, cluster):
        return plan
    stages = zip(plan.partition.stages, _paces(plan, cluster, profile), strict=True)
    return _sharing(plan, [_shares(stage, own, plan.batch) for stage, own in stages])


def other_shares(plan: Plan, cluster: Cluster) -> Iterator[Plan]:
    """The same with every way to share its batch, where there are `FEW`; else with one microbatch
    of a stage at another replica. None where devices are of one speed."""
    if not _may_share(plan, cluster):
        return
    stages = plan.partition.stages
    ways = [list(islice(_every(stage.replicas, plan.batch), FEW + 1)) for stage in stages]
    if prod(map(len, ways)) <= FEW:
        yield from (_sharing(plan, chosen) for chosen in product(*ways))
        return
    now = [_counts(stage, plan.batch) for stage in stages]
    for at, counts in enumerate(now):
        for one, other in permutations(range(len(counts)), 2):
            if counts[one] > 1:
                moved = list(counts)
                moved[one], moved[other] = moved[one] - 1, moved[other] + 1
                yield _sharing(plan, (*now[:at], tuple(moved), *now[at + 1 :]))


def _may_share(plan: Plan, cluster: Cluster) -> bool:
    if len({device.speed for device in cluster.devices}) <= 1:
        return False
    plain = plan.partition.chunks == plan.num_pipelines == 1 and not plan.run_ahead
    return plain and schedule_named(plan.schedule).takes_shares


def _sharing(plan: Plan, counts: Sequence[Shares]) -> Plan:
    """With so many microbatches of a batch for each replica, in the least whole numbers; () for
    equal ones."""
    found = tuple(
        tuple(own // gcd(*each) for own in each) if len(set(each)) > 1 else () for each in counts
    )
    return replace(plan, partition=plan.partition.sharing(found if any(found) else ()))


def _every(replicas: int, batch: int) -> Iterator[Shares]:
    """Microbatches of each replica, one at least; (), in turn, where they do not come out even."""
    if replicas == 1 or batch % replicas:
        yield ()
    if replicas > 1:
        for ends in combinations(range(1, batch), replicas - 1):
            yield tuple(b - a for a, b in pairwise((0, *ends, batch)))


def _counts(stage: Stage, batch: int) -> Shares:
    """Those of the batch that each replica takes; () where they are no whole numbers."""
    counts = [batch * part for part in stage.parts]
    whole = stage.replicas > 1 and all(count.denominator == 1 for count in counts)
    return tuple(map(int, counts)) if whole else ()


def _paces(plan: Plan, cluster: Cluster, profile: Profile | None) -> Iterator[list[float]]:
    """Per stage the seconds of a microbatch on each of its replicas, of any work where there is no
    profile: max(C / v, bytes / bandwidth), of links to the replicas beside it in turn."""
    stages = plan.partition.stages
    ordered = profile.in_order(plan.partition.order) if profile else None
    for number, stage in enumerate(stages):
        found = [1 / cluster.at(device).speed for device in stage.devices]
        if ordered:
            part, cuts = ordered.between(stage.first, stage.stop), ordered.graph.cut_bytes
            found = [(part.forward + part.backward) * each for each in found]
            for there, at in ((number - 1, stage.first - 1), (number + 1, stage.stop - 1)):
                if 0 <= there < len(stages):
                    rates = [
                        [cluster.link(device, other).bandwidth for other in stages[there].devices]
                        for device in stage.devices
                    ]
                    sent = (sum(cuts[at] / rate for rate in own) / len(own) for own in rates)
                    found = list(map(max, found, sent))
        yield found


def _shares(stage: Stage, paces: list[float], batch: int) -> Shares:
    if len(set(paces)) == 1 or batch < stage.replicas or not all(paces):
        return ()
    found = shares(paces, batch)
    return found if min(found) else ()

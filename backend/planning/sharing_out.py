"""Plans whose replicas take microbatches in proportion to the speed of their devices (AccPar)."""

from dataclasses import replace
from math import gcd

from backend.cluster.cluster import Cluster
from backend.pipeline.schedules.catalog import schedule as schedule_named
from backend.pipeline.shares import Shares, shares
from backend.planning.plan import Plan, Stage


def shared_out(plan: Plan, cluster: Cluster) -> Plan:
    """The same with shares of its batch wherever a stage mixes devices of unequal speed; as it is
    where none does, or where schedule and shape take no shares.

    What computes alone counts, so that a stage takes C m / sum of speeds where whole microbatches
    allow it (Song et al., HPCA 2020), and not C m / (r times the slowest). A replica that would get
    nothing leaves its stage with equal shares.
    """
    plain = plan.partition.chunks == plan.num_pipelines == 1 and not plan.run_ahead
    if not (cluster.devices and plain and schedule_named(plan.schedule).takes_shares):
        return plan
    found = tuple(_shares(stage, cluster, plan.batch) for stage in plan.partition.stages)
    return replace(plan, partition=plan.partition.sharing(found if any(found) else ()))


def _shares(stage: Stage, cluster: Cluster, batch: int) -> Shares:
    speeds = [cluster.at(device).speed for device in stage.devices]
    if len(set(speeds)) == 1 or batch < len(speeds):
        return ()
    found = shares([1 / speed for speed in speeds], batch)
    if not min(found) or len(set(found)) == 1:
        return ()
    return tuple(own // gcd(*found) for own in found)

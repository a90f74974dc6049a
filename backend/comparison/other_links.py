"""A run on fewer machines than its plan is for: what it sent did not cross the plan's links."""

from dataclasses import dataclass

from backend.cluster.cluster import Cluster, Level
from backend.runs.request.spec import TrainSpec


@dataclass(frozen=True, slots=True)
class OtherLinks:
    """The plan has ranks on `planned` machines, the run had `machines`; `slowest` is the slowest
    link between those of the plan."""

    planned: int
    machines: int
    slowest: Level


def other_links(spec: TrainSpec, cluster: Cluster) -> OtherLinks | None:
    """None where the run has a machine for each of the plan's, where the plan is for another
    cluster than `cluster`, and in emulation, where links take the plan's time."""
    first: dict[int, int] = {}
    for device in spec.plan.devices:
        first.setdefault(cluster.host_of(device), device)
    machines = spec.pool.nodes if spec.pool else max(1, len(spec.nodes))
    is_there = max(spec.plan.devices) < cluster.num_devices
    if spec.emulate or not is_there or len(first) <= machines:
        return None
    one, *others = first.values()
    links = (cluster.link(one, other) for other in others)
    return OtherLinks(len(first), machines, min(links, key=lambda link: link.bandwidth))

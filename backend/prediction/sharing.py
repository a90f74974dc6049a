"""Which of a plan's devices take turns on the cores of their host."""

from backend.cluster.cluster import Cluster
from backend.pipeline.clock.in_time import Cores
from backend.prediction.durations import PlanDurations


def shared_cores(cluster: Cluster, durations: PlanDurations) -> Cores | None:
    """The cores of the hosts, where one has more ranks than cores; None where all have enough.

    Pipelines on a device take turns on the device already. What sharing costs beside the turns
    (cold caches, switching) is not known here.
    """
    cores = cluster.levels[0].cores
    hosts = tuple(map(cluster.host_of, durations.devices))
    if cores is None or all(hosts.count(one) <= cores for one in hosts):
        return None
    return Cores(hosts, cores)

"""Which of a plan's devices take turns on the cores of their host."""

from backend.pipeline.clock.in_time import Cores
from backend.prediction.durations import PlanDurations


def shared_cores(durations: PlanDurations) -> Cores | None:
    """The cores of the hosts, where one has more ranks than cores; None where all have enough.

    Pipelines on a device take turns on the device already. What sharing costs beside the turns is
    in the durations (`TURN_COST`).
    """
    cluster = durations.cluster
    cores = cluster.levels[0].cores
    if cores is None or not durations.takes_turns:
        return None
    return Cores(tuple(map(cluster.host_of, durations.devices)), cores)

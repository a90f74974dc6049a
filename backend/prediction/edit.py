"""A plan changed by hand: other cuts, other replicas; checked and simulated at once."""

from collections.abc import Sequence
from dataclasses import replace

from backend.cluster.cluster import Cluster
from backend.errors import InvalidInput
from backend.planning.plan import Partition, Plan, Stage
from backend.prediction.predict import predict
from backend.prediction.prediction import Prediction
from backend.profiles.profile import Profile

BY_HAND = "by-hand"
"""The planner's name of a plan that a person made."""


def edit(
    profile: Profile,
    cluster: Cluster,
    plan: Plan,
    stops: Sequence[int],
    replicas: Sequence[int],
    optimizer: str = "momentum",
) -> Prediction:
    """What `plan` would do with stages that end before the layers `stops` (the last one at the
    end of the model) on so many replicas each, placed on the devices in their order.

    Schedule, microbatch and batch stay. Raises `InvalidInput` or `PlanDoesNotFit` with the
    numbers where that cannot run.
    """
    partition = placed(stops, replicas, plan.partition.order, cluster.num_devices)
    return predict(profile, cluster, replace(plan, planner=BY_HAND, partition=partition), optimizer)


def placed(
    stops: Sequence[int], replicas: Sequence[int], order: tuple[int, ...], num_devices: int
) -> Partition:
    """Stages side by side; raises `InvalidInput` where the numbers make no partition."""
    if len(stops) != len(replicas) or not stops:
        raise InvalidInput(
            f"{len(stops)} stages end somewhere, but {len(replicas)} have replicas",
            "Give as many replica counts as stages.",
        )
    if min(replicas) < 1 or sum(replicas) > num_devices:
        raise InvalidInput(
            f"replicas {'-'.join(map(str, replicas))} need {sum(replicas)} devices, "
            f"the cluster has {num_devices}",
            "Give every stage one replica or more, and together no more than there are devices.",
        )
    device, first, stages = 0, 0, []
    for stop, count in zip(stops, replicas, strict=True):
        stages.append(Stage(first, stop, tuple(range(device, device + count))))
        first, device = stop, device + count
    return Partition(tuple(stages), order)

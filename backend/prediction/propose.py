"""Every planner's plan for a profile on a cluster, simulated and ranked."""

from collections.abc import Iterator
from dataclasses import dataclass

from backend.cluster.cluster import Cluster
from backend.pipeline.schedules.catalog import schedule as schedule_named
from backend.planning.catalog import PLANNERS
from backend.planning.plan import Partition, Plan, PlanDoesNotFit
from backend.prediction.bottleneck import explain
from backend.prediction.durations import PlanDurations
from backend.prediction.predict import predict
from backend.prediction.prediction import Prediction
from backend.prediction.shapes import steady_shape
from backend.profiles.document import check_profile
from backend.profiles.profile import Profile


@dataclass(frozen=True, slots=True)
class Proposal:
    """A plan with what it will do.

    speedup   its samples/s over those of data parallelism on all devices, under the same
              schedule; None where data parallelism does not fit
    reason    one sentence with the numbers that decide
    """

    prediction: Prediction
    speedup: float | None
    reason: str


def propose(
    profile: Profile,
    cluster: Cluster,
    schedule: str = "pipedream",
    batch: int = 4,
    optimizer: str = "momentum",
) -> list[Proposal]:
    """One proposal per planner of the catalog, the most simulated samples/s first.

    `batch` microbatches make an update of a flush schedule; others update after every one.
    Planners that find the same partition make one proposal, under the first of their names.
    Plans that need more memory than there is are left out; if none is left the error of the
    first is raised (`PlanDoesNotFit`). Raises `InvalidInput` on an unknown schedule.
    """
    check_profile(profile)
    if not schedule_named(schedule).batched:
        batch = 1
    faults: list[PlanDoesNotFit] = []
    found: list[Prediction] = []
    for name, partition in _partitions(profile, cluster, faults):
        plan = Plan(name, partition, schedule, profile.microbatch, batch)
        try:
            found.append(predict(profile, cluster, plan, optimizer))
        except PlanDoesNotFit as fault:
            faults.append(fault)
    if not found:
        raise faults[0]
    return _ranked(profile, cluster, found)


def _partitions(
    profile: Profile, cluster: Cluster, faults: list[PlanDoesNotFit]
) -> Iterator[tuple[str, Partition]]:
    """Each partition once, with the first planner that finds it."""
    seen: set[Partition] = set()
    for name, entry in PLANNERS.items():
        try:
            partition = entry.plan(profile, cluster)
        except PlanDoesNotFit as fault:
            faults.append(fault)
            continue
        if partition not in seen:
            seen.add(partition)
            yield name, partition


def _ranked(profile: Profile, cluster: Cluster, found: list[Prediction]) -> list[Proposal]:
    reference = _data_parallel_rate(found, cluster)
    found.sort(key=lambda prediction: -prediction.samples_per_second)
    return [
        Proposal(
            prediction,
            prediction.samples_per_second / reference if reference else None,
            _reason(profile, cluster, prediction.plan),
        )
        for prediction in found
    ]


def _data_parallel_rate(found: list[Prediction], cluster: Cluster) -> float | None:
    """Samples/s of the one stage on all devices, whichever planner found it."""
    for prediction in found:
        if prediction.plan.partition.replicas == (cluster.num_devices,):
            return prediction.samples_per_second
    return None


def _reason(profile: Profile, cluster: Cluster, plan: Plan) -> str:
    return explain(PlanDurations(profile, plan.partition, cluster), plan, steady_shape(plan))

"""Every planner's plan for a profile on a cluster, simulated and ranked."""

from collections.abc import Iterator
from dataclasses import dataclass

from backend.cluster.cluster import Cluster
from backend.errors import StageflowError
from backend.pipeline.schedules.catalog import schedule as schedule_named
from backend.planning.catalog import PLANNERS
from backend.planning.plan import Partition, Plan, PlanDoesNotFit
from backend.prediction.bottleneck import explain
from backend.prediction.durations import PlanDurations
from backend.prediction.predict import predict
from backend.prediction.prediction import Prediction
from backend.prediction.search import Question
from backend.prediction.shapes import steady_shape
from backend.prediction.within import partition_within
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
    Plans that need more memory than there is, or a shape that the schedule refuses, are left
    out; if none is left the error of the first is raised (`PlanDoesNotFit`). Raises
    `InvalidInput` on an unknown schedule.
    """
    check_profile(profile)
    question = Question(profile, cluster, schedule, batch, optimizer)
    updates = batch if schedule_named(schedule).batched else 1
    faults: list[StageflowError] = []
    found: list[Prediction] = []
    for name, partition in _partitions(question, faults):
        plan = Plan(name, partition, schedule, profile.microbatch, updates)
        try:
            found.append(predict(profile, cluster, plan, optimizer))
        except StageflowError as fault:
            faults.append(fault)
    if not found:
        raise faults[0]
    return _ranked(profile, cluster, found)


def _partitions(
    question: Question, faults: list[StageflowError]
) -> Iterator[tuple[str, Partition]]:
    """Each partition once, with the first planner that finds it."""
    seen: set[Partition] = set()
    for name, entry in PLANNERS.items():
        try:
            partition = (
                partition_within(question, question.schedule)
                if name == "pipedream"
                else entry.plan(question.profile, question.cluster)
            )
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

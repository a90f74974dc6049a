"""One planner's plan with everything that a team decides by, and all of them in a table."""

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace

from backend.cluster.cluster import Cluster
from backend.errors import InvalidInput, StageflowError
from backend.pipeline.schedules.catalog import executable_schedules
from backend.pipeline.schedules.catalog import schedule as schedule_named
from backend.planning.baselines import data_parallel
from backend.planning.catalog import PLANNERS, SEARCHES
from backend.planning.placed import bottleneck
from backend.planning.plan import Plan
from backend.prediction.bottleneck import explain
from backend.prediction.durations import PlanDurations
from backend.prediction.moves import moves
from backend.prediction.prediction import Prediction
from backend.prediction.search import Question, search
from backend.prediction.shapes import steady_shape
from backend.profiles.profile import Profile


@dataclass(frozen=True, slots=True)
class Answer:
    """A prediction beside what it is compared with. None where that does not fit or run.

    over_data_parallel   its samples/s over those of data parallelism on all devices, under the
                         same schedule
    over_one_device      over those of the fastest device alone
    data_parallel_bytes  what data parallelism sends for as many samples as a minibatch has
    bound_seconds        no plan takes less for a minibatch: all compute and one update, evenly on
                         all devices
    bottleneck_seconds   seconds per microbatch by PipeDream's cost model
    reasons              what holds the plan back, and what moving a layer would change
    planner_seconds      processor seconds that planning took, simulations included
    """

    prediction: Prediction
    over_data_parallel: float | None
    over_one_device: float
    data_parallel_bytes: float | None
    bound_seconds: float
    bottleneck_seconds: float
    reasons: tuple[str, ...]
    planner_seconds: float

    @property
    def gap(self) -> float:
        """By how much another plan may be faster at most, as a share of the plan's seconds."""
        seconds = self.prediction.seconds_per_minibatch
        return max(0.0, 1 - self.bound_seconds / seconds) if seconds else 0.0


@dataclass(frozen=True, slots=True)
class Row:
    """A planner under a schedule: its answer, or why there is none."""

    planner: str
    schedule: str
    answer: Answer | None
    fault: str = ""


def answer(name: str, question: Question) -> Answer:
    """The plan of the planner `name`, judged. Raises as `search`."""
    start = time.process_time()
    prediction = search(name, question)
    return judge(question, prediction, time.process_time() - start)


def judge(question: Question, prediction: Prediction, seconds: float = 0.0) -> Answer:
    """`prediction` beside data parallelism, one device and the lower bound."""
    plan, cluster = prediction.plan, question.cluster
    profile = question.at(plan.microbatch)
    update = sum(layer.update for layer in profile.layers)
    samples = plan.batch * plan.microbatch
    least = min(
        each.compute / each.microbatch for each in (profile, question.profile, *question.further)
    )
    alone = (plan.batch * profile.compute + update) / max(device.speed for device in cluster.each)
    parallel = _data_parallel(question, plan)
    return Answer(
        prediction,
        _ratio(prediction, parallel),
        alone / prediction.seconds_per_minibatch if prediction.seconds_per_minibatch else 0.0,
        _bytes_for(prediction, parallel),
        (samples * least + update) / cluster.speed / question.gain,
        bottleneck(profile, cluster, plan.partition) if plan.partition.chunks == 1 else 0.0,
        reasons(profile, cluster, plan, question.optimizer),
        seconds,
    )


def reasons(
    profile: Profile, cluster: Cluster, plan: Plan, optimizer: str = "momentum"
) -> tuple[str, ...]:
    """What the bottleneck is, and what it would cost to move its layers away. None for a plan
    that interleaves."""
    if plan.partition.chunks > 1:
        return ()
    durations = PlanDurations(profile, plan.partition, cluster)
    return explain(durations, plan, steady_shape(plan)), *moves(profile, cluster, plan, optimizer)


def compare(question: Question) -> Iterator[Row]:
    """Every planner under every schedule (or the one that is asked for), as it is computed."""
    names = (question.schedule,) if question.schedule else _schedules()
    for name in (*PLANNERS, *SEARCHES):
        free = name in SEARCHES and not question.schedule
        for schedule in ("",) if free else names:
            yield _row(name, replace(question, schedule=schedule))


def _row(name: str, question: Question) -> Row:
    try:
        found = answer(name, question)
    except StageflowError as fault:
        return Row(name, question.schedule, None, str(fault))
    return Row(name, found.prediction.plan.schedule, found)


def _schedules() -> tuple[str, ...]:
    """What a run may use."""
    return tuple(member.name for member in executable_schedules())


def _data_parallel(question: Question, plan: Plan) -> Prediction | None:
    """The model on every device under the plan's schedule, or under PipeDream's where that is
    not for one stage."""
    partition = data_parallel(question.profile, question.cluster)
    batch = question.batch if schedule_named(plan.schedule).batched else 1
    for schedule, size in ((plan.schedule, batch), ("pipedream", 1)):
        other = Plan("data-parallel", partition, schedule, question.profile.microbatch, size)
        try:
            return question.predict(other)
        except InvalidInput:
            continue
        except StageflowError:
            return None
    return None


def _ratio(mine: Prediction, other: Prediction | None) -> float | None:
    if other is None or not other.samples_per_second:
        return None
    return mine.samples_per_second / other.samples_per_second


def _bytes_for(mine: Prediction, other: Prediction | None) -> float | None:
    """What `other` sends for the samples of a minibatch of `mine`."""
    if other is None:
        return None
    samples = mine.plan.batch * mine.plan.microbatch
    return other.sent_bytes * samples / (other.plan.batch * other.plan.microbatch)

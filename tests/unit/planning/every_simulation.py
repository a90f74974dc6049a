"""`best` under one schedule beside every plan under it, each simulated."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product

from drawn import Case
from every_placement import every_placement

from backend.cluster.cluster import Cluster, Device
from backend.errors import StageflowError
from backend.pipeline.schedules.catalog import schedule as schedule_named
from backend.planning.plan import Plan
from backend.prediction.answer import Answer, rank
from backend.prediction.bottleneck import compute_bound, most_samples
from backend.prediction.question import Question

SIMULATED = ("1f1b-flush", "pipedream", "gpipe")
SHARING = ("1f1b-flush", "2bw", "gpipe")
"""Schedules under which replicas may have shares."""
SAME = 1 + 1e-9


@dataclass(frozen=True, slots=True)
class Beside:
    """How many times as fast as the answer the fastest plan is, and whether it is faster than the
    bound. `bound` is that as a share of its seconds, `compute` that of compute alone on all
    devices by the sum of their speeds."""

    times: float
    is_beyond: bool
    bound: float = 1.0
    compute: float = 1.0


def simulated(case: Case, number: int, among: Sequence[str] = SIMULATED) -> Beside | None:
    """Of the schedule with that number; a bound is of rates here. None where nothing fits, or
    takes no time."""
    question = _asked(case, among[number % len(among)])
    try:
        [found] = rank(question)
    except StageflowError:
        return None
    rate = best = found.prediction.samples_per_second
    for partition in every_placement(question.profile, question.cluster):
        plan = question.plan("best", partition)
        if compute_bound(question.profile, question.cluster, plan) > best * SAME:
            for each in _shared(plan, question.cluster):
                best = max(best, _rate(question, each, best))
    if not 0 < rate < float("inf"):
        return None
    return _beside(question, found, best)


def _beside(question: Question, found: Answer, best: float) -> Beside:
    times = best / found.prediction.samples_per_second
    least = found.prediction.seconds_per_minibatch / times
    plan, cluster = found.prediction.plan, question.cluster
    alone = plan.batch * plan.microbatch * question.profile.compute / cluster.speed
    is_beyond = found.bound_seconds > least * SAME
    return Beside(times, is_beyond, found.bound_seconds / least, alone / least)


def _asked(case: Case, schedule: str) -> Question:
    cluster = case.cluster
    if case.rule:
        memory = case.rule.limit
        each = tuple(replace(device, memory=memory) for device in cluster.devices)
        cluster = replace(cluster, device=Device(memory=memory), devices=each)
    return Question(replace(case.profile, microbatch=1), cluster, schedule=schedule)


def _shared(plan: Plan, cluster: Cluster) -> Iterator[Plan]:
    """A plan with every share of its batch that the replicas of each stage may take."""
    yield plan
    if cluster.is_uniform or not schedule_named(plan.schedule).takes_shares:
        return
    ways = [_ways(stage.replicas, plan.batch) for stage in plan.partition.stages]
    for chosen in product(*ways):
        if any(chosen):
            yield replace(plan, partition=plan.partition.sharing(chosen))


def _ways(replicas: int, batch: int) -> list[tuple[int, ...]]:
    each = product(range(1, batch + 1), repeat=replicas) if replicas > 1 else ()
    return [(), *(counts for counts in each if sum(counts) == batch and len(set(counts)) > 1)]


def _rate(question: Question, plan: Plan, best: float) -> float:
    """Samples/s of `plan`; 0 where it cannot be better than `best` or does not fit."""
    try:
        if most_samples(question.profile, question.cluster, plan) <= best * SAME:
            return 0.0
        return question.predict(plan).samples_per_second
    except StageflowError:
        return 0.0

"""`best` under one schedule beside every plan under it, each simulated."""

from dataclasses import dataclass, replace

from drawn import Case
from every_placement import every_placement

from backend.cluster.cluster import Device
from backend.errors import StageflowError
from backend.planning.plan import Plan
from backend.prediction.answer import rank
from backend.prediction.bottleneck import most_samples
from backend.prediction.question import Question

SIMULATED = ("1f1b-flush", "pipedream", "gpipe")
SAME = 1 + 1e-9


@dataclass(frozen=True, slots=True)
class Beside:
    """How many times as fast as the answer the fastest plan is, and whether it is faster than the
    bound."""

    times: float
    is_beyond: bool


def simulated(case: Case, number: int) -> Beside | None:
    """Of the schedule with that number; a bound is of rates here. None where nothing fits, or
    takes no time."""
    question = _asked(case, SIMULATED[number % len(SIMULATED)])
    try:
        [found] = rank(question)
    except StageflowError:
        return None
    rate = best = found.prediction.samples_per_second
    for partition in every_placement(question.profile, question.cluster):
        best = max(best, _rate(question, question.plan("best", partition), best))
    if not 0 < rate < float("inf"):
        return None
    times = best / rate
    return Beside(
        times, times * found.bound_seconds > found.prediction.seconds_per_minibatch * SAME
    )


def _asked(case: Case, schedule: str) -> Question:
    cluster = case.cluster
    if case.rule:
        memory = case.rule.limit
        each = tuple(replace(device, memory=memory) for device in cluster.devices)
        cluster = replace(cluster, device=Device(memory=memory), devices=each)
    return Question(replace(case.profile, microbatch=1), cluster, schedule=schedule)


def _rate(question: Question, plan: Plan, best: float) -> float:
    """Samples/s of `plan`; 0 where it cannot be better than `best` or does not fit."""
    try:
        if most_samples(question.profile, question.cluster, plan) <= best * SAME:
            return 0.0
        return question.predict(plan).samples_per_second
    except StageflowError:
        return 0.0

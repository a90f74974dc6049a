"""Each planner by name: the plan that it chooses for a question, simulated."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from heapq import heapify, heappop, heappush
from itertools import count
from math import inf

from backend.errors import InvalidInput, StageflowError
from backend.pipeline.schedules.catalog import schedule as schedule_named
from backend.pipeline.schedules.catalog import training_schedules
from backend.planning.baselines import data_parallel
from backend.planning.catalog import PLANNERS
from backend.planning.plan import Plan, PlanDoesNotFit
from backend.planning.savings import Savings
from backend.prediction.bottleneck import drains, most_samples
from backend.prediction.candidates import (
    WIDEST,
    double_buffered,
    every_plan,
    interleaved_partitions,
    parallel_pipelines,
)
from backend.prediction.improvement import nearby
from backend.prediction.memory_constrained import memory_constrained_partition
from backend.prediction.prediction import Prediction
from backend.prediction.question import Question
from backend.prediction.shapes import with_short_rounds

MOST_STEPS = 10_000
"""Stages times devices of the plans that are simulated to improve the best candidate."""
STEP = 1e-4
"""A step that gains a smaller share is not taken."""
SIMILAR = 1e-9
"""Rates that differ by less are equal: then the candidate that was named first is taken."""


class PlanningStopped(StageflowError):
    """Somebody ended a search before it had a plan."""

    advice = "Plan again, or ask for one planner and one schedule: that takes less time."


@dataclass(frozen=True, slots=True)
class Watch:
    """Who follows a search.

    progress  called with a planner's name, and how many of how many candidates are done
    stop      asked before every candidate; True ends the search with the best one so far
    """

    progress: Callable[[str, int, int], None] = lambda planner, done, total: None
    stop: Callable[[], bool] = lambda: False

    def check(self) -> None:
        """Raise `PlanningStopped` where it is to end."""
        if self.stop():
            raise PlanningStopped("planning was stopped before there was a plan")


UNWATCHED = Watch()
Found = tuple[float, int, Prediction]
"""Samples/s, the number of the candidate, and its prediction."""


def search(name: str, question: Question, watch: Watch = UNWATCHED) -> Prediction:
    """The plan of the planner `name` with what it will do, of the sizes of update that the question
    admits the faster one. Raises `PlanDoesNotFit`, `InvalidInput` where the planner cannot use the
    schedule, and `PlanningStopped`."""
    found: Found | None = None
    fault: StageflowError | None = None
    for number, sized in enumerate(question.sizes):
        try:
            prediction = _sized(name, sized, watch)
        except StageflowError as error:
            fault = fault or error
        else:
            found = _better(found, (prediction.samples_per_second, number, prediction))
    if found:
        return found[2]
    assert fault
    raise fault


def _sized(name: str, question: Question, watch: Watch) -> Prediction:
    """The same of updates that are as large as is asked."""
    watch.check()
    chunked = question.schedule and schedule_named(question.schedule).chunked
    if name == "best":
        found = _fastest(name, question, every_plan(question), watch)
        is_small = question.cluster.num_devices <= WIDEST
        return _improved(question, found, watch) if is_small else found
    if name == "avgpipe":
        return _avgpipe(question, watch)
    if chunked:
        return _fastest(name, question, _chunked(name, question), watch)
    if name == "pipedream-2bw":
        return _two_bw(question, watch)
    if name == "pipedream":
        return _pipedream(question)
    partition = PLANNERS[name].plan(question.profile, question.cluster)
    return question.fitting(question.plan(name, partition))


def _fastest(name: str, question: Question, plans: Iterable[Plan], watch: Watch) -> Prediction:
    """The plan with the most simulated samples/s of those that fit, the first one of equals.

    Best first: candidates are simulated in the order of their bounds, until no bound is above
    the best rate found. What does not fit the memory comes again with every way to save some. What
    late weights do to learning is not weighed. Raises `PlanDoesNotFit` and `PlanningStopped`.
    """
    watch.progress(name, 0, 0)
    found: Found | None = None
    fault: StageflowError | None = None
    least, *others = question.savings
    bound, ways = _bounds(question), 1 + len(others)
    listed = enumerate(dict.fromkeys(map(least.of, plans)))
    queue = [(-bound(plan), ways * number, plan) for number, plan in listed]
    heapify(queue)
    for done in count():
        watch.progress(name, done, done + len(queue))
        if not queue or (found and _is_settled(found, *queue[0][:2])) or watch.stop():
            break
        _, number, plan = heappop(queue)
        try:
            prediction = question.predict(plan)
        except PlanDoesNotFit as error:
            fault = fault or error
            if number % ways == 0:
                saved = {each.of(plan): None for each in others}
                for way, other in enumerate(saved, start=1):
                    if other != plan:
                        heappush(queue, (-bound(other), number + way, other))
        except StageflowError as error:
            fault = fault or error
        else:
            found = _better(found, (prediction.samples_per_second, number, prediction))
    if found:
        return found[2]
    watch.check()
    raise fault or PlanDoesNotFit("no schedule admits any partition", "Ask for another one.")


def _improved(question: Question, best: Prediction, watch: Watch) -> Prediction:
    """`best`, or a faster plan that small steps lead to, each of which is simulated. Ends where no
    step helps, after so much work (`MOST_STEPS`), or when it is stopped."""
    bound, left = _bounds(question), MOST_STEPS
    devices, tried = question.cluster.num_devices, {best.plan}
    while left > 0:
        steps = [plan for plan in nearby(best.plan, devices) if plan not in tried]
        steps = [plan for plan in steps if question.admits(plan)]
        for plan in sorted(steps, key=bound, reverse=True):
            if left <= 0 or bound(plan) <= best.samples_per_second * (1 + STEP) or watch.stop():
                return best
            tried.add(plan)
            left -= 1 + len(plan.partition.stages) * plan.partition.num_devices
            try:
                found = question.predict(plan)
            except StageflowError:
                continue
            if found.samples_per_second > best.samples_per_second * (1 + STEP):
                best = found
                break
        else:
            return best
    return best


def _is_settled(found: Found, bound: float, number: int) -> bool:
    """Whether no candidate of that negative bound and number, nor any behind it, is better."""
    rate, first, _ = found
    return -bound < rate * (1 - SIMILAR) or (-bound <= rate * (1 + SIMILAR) and number > first)


def _better(old: Found | None, new: Found) -> Found:
    """The one with more samples/s; of equals the candidate that was named first."""
    if old is None or new[0] > old[0] * (1 + SIMILAR):
        return new
    return new if new[0] >= old[0] * (1 - SIMILAR) and new[1] < old[1] else old


def _bounds(question: Question) -> Callable[[Plan], float]:
    """The bound of a plan; those that differ in a schedule alone that is bounded alike are counted
    once."""
    alike: dict[tuple[bool, bool], str] = {}

    @cache
    def bound(same: Plan) -> float:
        profile = question.at(same.microbatch)
        gain = question.gain if same.num_pipelines > 1 else 1.0
        try:
            most = gain * most_samples(profile, question.cluster, same)
        except StageflowError:
            return inf  # predicting it raises the same, with its reason
        return float(f"{most:.10g}")  # equal ones stay in the order in which they were named

    def found(plan: Plan) -> float:
        kind = drains(plan.schedule), schedule_named(plan.schedule).delay is not None
        name = alike.setdefault(kind, plan.schedule) if kind[0] else ""
        return bound(replace(plan, schedule=name, planner="", advance=1))

    return found


def _avgpipe(question: Question, watch: Watch) -> Prediction:
    """AvgPipe on a straight pipeline: the number of parallel pipelines, microbatches and advance
    with the most simulated samples/s within the memory (Chen et al., PPoPP 2023; our tuning).

    Pipelines on one device compute one at a time, so that only waiting is filled; what kernels
    of several gain together a measured run of two tells (`Question.gain`).
    """
    plans = list(parallel_pipelines(question))
    if not plans:
        known = ", ".join(s.name for s in training_schedules() if s.parallel)
        raise InvalidInput(
            f"avgpipe puts pipelines beside each other, schedule {question.schedule!r} is for one",
            f"Use schedule {known}, or another planner.",
        )
    return _fastest("avgpipe", question, plans, watch)


def _pipedream(question: Question) -> Prediction:
    """PipeDream's partition within the memory, which is saved where none fits without; with fewer
    replicas where its rounds would be too long to train or to simulate."""

    def plan(savings: Savings) -> Plan:
        schedule = question.plan("pipedream", whole).schedule
        cut = with_short_rounds(memory_constrained_partition(question, schedule, savings))
        return savings.of(question.plan("pipedream", cut))

    whole = data_parallel(question.profile, question.cluster)
    return question.first_fitting(plan)


def _chunked(name: str, question: Question) -> Iterator[Plan]:
    """The plans of a planner of equal stages with several of them on each device."""
    depths = {"pipedream-2bw": None, "gpipe-balanced": question.cluster.num_devices}
    if name not in depths:
        raise InvalidInput(
            f"{name} gives a device one stage, {question.schedule} asks for several",
            f"Use {', '.join(depths)} or best.",
        )
    for partition in interleaved_partitions(question):
        if depths[name] in (None, partition.pipeline_size):
            yield question.plan(name, partition)


def _two_bw(question: Question, watch: Watch) -> Prediction:
    """The largest microbatch that fits, then width, depth and recomputation with the most
    simulated samples/s (ICML 2021, section 3.3), of updates of the samples that are asked for."""
    fault: PlanDoesNotFit | None = None
    for plans in double_buffered(question):
        if not plans:
            continue
        try:
            return _fastest("pipedream-2bw", question, plans, watch)
        except PlanDoesNotFit as error:
            fault = fault or error
    raise fault or PlanDoesNotFit(
        f"2bw needs a microbatch in flight for each of {question.cluster.num_devices} devices, an "
        f"update has {question.samples} samples",
        "Use more microbatches per update, allow larger updates, or use fewer devices.",
    )

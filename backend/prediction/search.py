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
from backend.planning.work import SearchWork
from backend.prediction.bottleneck import drains, most_samples
from backend.prediction.candidates import (
    double_buffered,
    every_plan,
    interleaved_partitions,
    parallel_pipelines,
)
from backend.prediction.improvement import nearby
from backend.prediction.memory_constrained import memory_constrained_partition
from backend.prediction.prediction import Prediction
from backend.prediction.question import Question
from backend.prediction.shapes import steady_shape, with_short_rounds
from backend.prediction.steady import forwards

PREDICTING, FORWARD, STAGE = 300.0, 20.0, 20.0
"""Work of a prediction: once, per forward that is simulated, and per stage."""
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


def search(
    name: str, question: Question, watch: Watch = UNWATCHED, work: SearchWork | None = None
) -> Prediction:
    """The plan of the planner `name` with what it will do, of the sizes of update that the question
    admits the faster one. What the `work` (by default the question's) does not suffice for is left
    out. Raises `PlanDoesNotFit`, `InvalidInput` where the planner cannot use the schedule,
    `WorkSpent` and `PlanningStopped`."""
    work = work or question.work(watch.check)
    found: Found | None = None
    fault: StageflowError | None = None
    sizes = question.sizes
    for number, sized in enumerate(sizes):
        try:
            prediction = _sized(name, sized, watch, work.part(1 / (len(sizes) - number)))
        except StageflowError as error:
            fault = fault or error
        else:
            found = _better(found, (prediction.samples_per_second, number, prediction))
    if found:
        return found[2]
    assert fault
    raise fault


def _sized(name: str, question: Question, watch: Watch, work: SearchWork) -> Prediction:
    """The same of updates that are as large as is asked."""
    watch.check()
    chunked = question.schedule and schedule_named(question.schedule).chunked
    if name == "best":
        plans = list(every_plan(question, work))
        return _improved(question, _fastest(name, question, plans, watch, work), watch, work)
    if name == "avgpipe":
        return _avgpipe(question, watch, work)
    if chunked:
        return _fastest(name, question, _chunked(name, question), watch, work)
    if name == "pipedream-2bw":
        return _two_bw(question, watch, work)
    if name == "pipedream":
        return _pipedream(question, work)
    work.count(PREDICTING)
    partition = PLANNERS[name].plan(question.profile, question.cluster)
    return question.fitting(question.plan(name, partition))


def _fastest(
    name: str, question: Question, plans: Iterable[Plan], watch: Watch, work: SearchWork
) -> Prediction:
    """The plan with the most simulated samples/s of those that fit, the first one of equals.

    Best first: candidates are simulated in the order of their bounds, until no bound is above
    the best rate found or the work is spent. What does not fit the memory comes again with every
    way to save some. What late weights do to learning is not weighed. Raises `PlanDoesNotFit` and
    `PlanningStopped`.
    """
    watch.progress(name, 0, 0)
    found: Found | None = None
    fault: StageflowError | None = None
    least, *others = question.savings
    bound, ways = _bounds(question, work), 1 + len(others)
    listed = enumerate(dict.fromkeys(map(least.of, plans)))
    queue = [(-bound(plan), ways * number, plan) for number, plan in listed]
    heapify(queue)
    for done in count():
        watch.progress(name, done, done + len(queue))
        if not queue or (found and _is_settled(found, *queue[0][:2])) or watch.stop():
            break
        if found and work.is_spent:
            work.leave_out(f"{done:,} of {done + len(queue):,} candidates were simulated")
            break
        _, number, plan = heappop(queue)
        try:
            prediction = _predicted(question, plan, work)
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


def _predicted(question: Question, plan: Plan, work: SearchWork) -> Prediction:
    """`plan` simulated, at its cost. Raises as `Question.predict`."""
    work.count(PREDICTING + STAGE * len(plan.partition.stages))
    found = question.ahead(plan)
    if found.is_simulated:
        work.count(FORWARD * forwards(plan, steady_shape(plan)))
    if found.plan.run_ahead > plan.run_ahead:
        work.count(FORWARD * forwards(found.plan, steady_shape(found.plan)))
    return found


def _improved(question: Question, best: Prediction, watch: Watch, work: SearchWork) -> Prediction:
    """`best`, or a faster plan that small steps lead to, each of which is simulated. Ends where no
    step helps, where the work is spent, or when it is stopped."""
    bound = _bounds(question, work)
    devices, tried = question.cluster.num_devices, {best.plan}
    while not work.is_spent:
        steps = []
        for plan in nearby(best.plan, devices):
            work.count(STAGE * len(plan.partition.stages) / 4 + plan.partition.num_devices / 8)
            if work.is_spent:
                return best
            if plan not in tried and question.admits(plan):
                steps.append(plan)
        for plan in sorted(steps, key=bound, reverse=True):
            if work.is_spent or bound(plan) <= best.samples_per_second * (1 + STEP) or watch.stop():
                return best
            tried.add(plan)
            try:
                found = _predicted(question, plan, work)
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


def _bounds(question: Question, work: SearchWork) -> Callable[[Plan], float]:
    """The bound of a plan; those that differ in a schedule alone that is bounded alike are counted
    once. Infinite once the work is spent: what is not bounded is not left out for its bound."""
    alike: dict[tuple[bool, bool], str] = {}

    @cache
    def bound(same: Plan) -> float:
        if work.is_spent:
            return inf
        work.count(PREDICTING / 3 + STAGE * len(same.partition.stages))
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
        return bound(replace(plan, schedule=name, planner="", advance=1, run_ahead=0))

    return found


def _avgpipe(question: Question, watch: Watch, work: SearchWork) -> Prediction:
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
    return _fastest("avgpipe", question, plans, watch, work)


def _pipedream(question: Question, work: SearchWork) -> Prediction:
    """PipeDream's partition within the memory, which is saved where none fits without; with fewer
    replicas where its rounds would be too long to train or to simulate."""

    def plan(savings: Savings) -> Plan:
        schedule = question.plan("pipedream", whole).schedule
        share = work.part(0.5)
        cut = with_short_rounds(memory_constrained_partition(question, schedule, savings, share))
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


def _two_bw(question: Question, watch: Watch, work: SearchWork) -> Prediction:
    """The largest microbatch that fits, then width, depth and recomputation with the most
    simulated samples/s (ICML 2021, section 3.3), of updates of the samples that are asked for."""
    fault: PlanDoesNotFit | None = None
    for plans in double_buffered(question):
        if not plans:
            continue
        try:
            return _fastest("pipedream-2bw", question, plans, watch, work)
        except PlanDoesNotFit as error:
            fault = fault or error
    raise fault or PlanDoesNotFit(
        f"2bw needs a microbatch in flight for each of {question.cluster.num_devices} devices, an "
        f"update has {question.samples} samples",
        "Use more microbatches per update, allow larger updates, or use fewer devices.",
    )

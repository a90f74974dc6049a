"""Each planner by name: the plan that it chooses for a question, simulated."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from math import inf

from backend.errors import InvalidInput, StageflowError
from backend.pipeline.schedules.catalog import schedule as schedule_named
from backend.pipeline.schedules.catalog import training_schedules
from backend.planning.baselines import data_parallel
from backend.planning.catalog import PLANNERS
from backend.planning.plan import Plan, PlanDoesNotFit
from backend.planning.work import SearchWork, WorkSpent
from backend.prediction.best import best
from backend.prediction.best_first import Found, better, fastest
from backend.prediction.candidates import (
    double_buffered,
    interleaved_partitions,
    own_plans,
    parallel_pipelines,
    pipedream_plan,
    two_bw_cuts,
)
from backend.prediction.completed import completed
from backend.prediction.kept_orders import straight_one, with_order
from backend.prediction.least_seconds import least_seconds
from backend.prediction.limits import spare_work
from backend.prediction.prediction import Prediction
from backend.prediction.question import PLANNER_NAMES, Question
from backend.prediction.simulations import PREDICTING, Simulations
from backend.prediction.watch import UNWATCHED, Watch

CLOSED = 5e-4
"""Of a plan's rate: a gap that is shown as 0.0 %."""
AT_ONCE = 5e4
"""Work of an answer that is shown while the search goes on."""


def search(
    name: str, question: Question, watch: Watch = UNWATCHED, work: SearchWork | None = None
) -> Prediction:
    """The plan of the planner `name` with what it will do, of the sizes of update that the question
    admits the faster one. What the `work` (by default the question's) does not suffice for is left
    out. Raises `PlanDoesNotFit`, `InvalidInput` where the planner cannot use the schedule,
    `WorkSpent` and `PlanningStopped`."""
    work = work or question.work(name, watch.check)
    if question.schedule and (rule := schedule_named(question.schedule)).planned_as:
        as_rule = replace(question, schedule=rule.planned_as)
        answered = search(name, as_rule, watch, work)
        if name == "best":
            _ask_others(as_rule, watch)
        plan = straight_one(answered, as_rule.sizes[-1].answered.values())
        named = replace(plan, schedule=rule.name)
        return question.predict(with_order(question, named, folds=True))
    if name == "best":
        if not question.search_on and (closed := _unbeatable(question, work)):
            return closed
        _ask_others(question, watch)
        spent = sum(done for other, done in question.spent.items() if other != name)
        work.most += spare_work(question.cluster.num_devices, spent)
    found: Found | None = None
    fault: StageflowError | None = None
    sizes = question.sizes
    for number, sized in enumerate(sizes):
        sized.answered[name] = None
        try:
            part = work.part(1 / (len(sizes) - number))
            prediction = _completed(sized, _sized(name, sized, watch, part), part)
        except StageflowError as error:
            fault = fault or error
        else:
            sized.answered[name] = prediction
            found = better(found, (prediction.samples_per_second, number, prediction))
    question.spent[name] = work.done
    if found:
        return found[2]
    assert fault
    raise fault


def _unbeatable(question: Question, work: SearchWork) -> Prediction | None:
    """Data parallelism, where no plan of any size of update can be more than `CLOSED` faster."""
    found, most = [], 0.0
    with suppress(StageflowError):
        for sized in question.sizes:
            whole = data_parallel(sized.profile, sized.cluster)
            plan = sized.plan("best", whole)
            if not sized.admits(plan):
                return None
            found.append(completed(sized, sized.fitting(plan), work))
            bound = least_seconds(sized, plan)
            most = max(most, plan.batch * plan.microbatch / bound if bound else inf)
        fastest_one = max(found, key=lambda each: each.samples_per_second)
        if fastest_one.samples_per_second * (1 + CLOSED) >= most:
            return fastest_one
    return None


def _ask_others(question: Question, watch: Watch) -> None:
    """What the other planners answer is where `best` begins, whether they were asked before or not;
    none where it is a matter of going on from a plan, as hardly one of theirs may."""
    for name in PLANNER_NAMES:
        if name != "best" and not question.like and name not in question.sizes[-1].answered:
            with suppress(StageflowError):
                search(name, question, watch)


def first_found(question: Question, watch: Watch) -> Prediction:
    """For who waits for `best`: the fastest of the other planners' own plans and of PipeDream's,
    as far as `AT_ONCE` of work suffices for its search. Raises as `search`."""
    sized, work = question.sizes[0], SearchWork(AT_ONCE, watch.check)
    plans = list(own_plans(sized))
    if not (question.schedule and schedule_named(question.schedule).chunked):
        with suppress(PlanDoesNotFit, WorkSpent):
            plans.append(pipedream_plan(sized, sized.savings[0], SearchWork(AT_ONCE, watch.check)))
    admitted = filter(sized.admits, (replace(plan, planner="best") for plan in plans))
    return fastest("best", Simulations(sized, work), admitted, watch)


def _completed(question: Question, plans: Sequence[Prediction], work: SearchWork) -> Prediction:
    """The fastest of `plans` once each is completed. Raises what the first one does."""
    plain, *others = plans
    first = completed(question, plain, work)
    found: Found = (first.samples_per_second, 0, first)
    for number, plan in enumerate(others, start=1):
        with suppress(StageflowError):
            done = completed(question, plan, work)
            found = better(found, (done.samples_per_second, number, done))
    return found[2]


def _sized(name: str, question: Question, watch: Watch, work: SearchWork) -> Sequence[Prediction]:
    """The plan of the planner for updates that are as large as is asked, in front of those that may
    be faster once they are completed."""
    watch.check()
    if name == "best":
        return best(question, watch, work)
    return [_other(name, question, watch, work)]


def _other(name: str, question: Question, watch: Watch, work: SearchWork) -> Prediction:
    """The same of each planner but `best`."""
    chunked = question.schedule and schedule_named(question.schedule).chunked
    if name == "avgpipe":
        return _avgpipe(question, watch, work)
    if chunked:
        return fastest(name, Simulations(question, work), _chunked(name, question), watch)
    if name == "pipedream-2bw":
        return _two_bw(question, watch, work)
    if name == "pipedream":
        return _pipedream(question, work)
    work.count(PREDICTING)
    partition = PLANNERS[name].plan(question.profile, question.cluster)
    return question.fitting(question.plan(name, partition))


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
    return fastest("avgpipe", Simulations(question, work), plans, watch)


def _pipedream(question: Question, work: SearchWork) -> Prediction:
    """PipeDream's plan within the memory, which is saved where none fits without."""
    return question.first_fitting(
        lambda savings: pipedream_plan(question, savings, work.part(0.75))
    )


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
    for plans in double_buffered(question, two_bw_cuts(question)):
        if not plans:
            continue
        try:
            return fastest("pipedream-2bw", Simulations(question, work), plans, watch)
        except PlanDoesNotFit as error:
            fault = fault or error
    raise fault or PlanDoesNotFit(
        f"2bw needs a microbatch in flight for each of {question.cluster.num_devices} devices, an "
        f"update has {question.samples} samples",
        "Use more microbatches per update, allow larger updates, or use fewer devices.",
    )

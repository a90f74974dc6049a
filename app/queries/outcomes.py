"""What each pair of a plan and a schedule does, computed once per question."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

import streamlit as st

from app import services
from app.naming import plan_name, plan_words
from app.queries import planner
from app.session.cache_keys import BY_QUESTION
from backend.comparison.pairs import Pair
from backend.errors import StageflowError
from backend.pipeline.bubbles import Causes, idle_causes, total
from backend.pipeline.held import staleness
from backend.pipeline.memory import Moment, memory
from backend.pipeline.program import Program
from backend.pipeline.timeline import Timeline
from backend.planning.channels.held import as_held
from backend.planning.cuts import BY_HAND, read_cut
from backend.planning.plan import Partition, Plan, Stage
from backend.prediction.answer import Answer, Reply, by_order
from backend.prediction.kept_orders import with_order
from backend.prediction.predict import predicted_program
from backend.prediction.prediction import Prediction
from backend.prediction.programs import Imported
from backend.prediction.question import Question
from backend.prediction.shapes import microbatch_unit
from backend.prediction.sizes import PlanSizes

KEPT = 128


@dataclass(frozen=True, slots=True)
class Planned:
    """A pair with its plan, predicted for `question`."""

    pair: Pair
    question: Question
    prediction: Prediction

    @property
    def plan(self) -> Plan:
        return self.prediction.plan

    @property
    def name(self) -> str:
        """As "15-1 · pipedream", with what else is chosen."""
        words = plan_words(self.plan, self.question.profile.microbatch)
        return " · ".join((plan_name(self.plan), *words))


@dataclass(frozen=True, slots=True)
class Outcome:
    """`timeline` is of about as many microbatches for all pairs; `idle` its idle seconds by
    cause, of all ranks; `held` what each rank holds over time; `staleness` per stage."""

    name: str
    prediction: Prediction
    program: Program
    timeline: Timeline
    idle: Causes
    held: tuple[tuple[Moment, ...], ...]
    staleness: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Failed:
    """A pair that cannot be: the reason is for people."""

    pair: Pair
    name: str
    reason: StageflowError


def failed(pair: Pair, reason: StageflowError) -> Failed:
    """`pair`, by the name of its source and schedule."""
    return Failed(pair, " · ".join(filter(None, (pair.source, pair.schedule))), reason)


def planned(question: Question, pair: Pair, said: Sequence[Reply]) -> Planned | Failed:
    """The pair's plan under `question`, or why it cannot be. `said` is the reply of its planner,
    where it names one."""
    try:
        for reply in said:
            if reply.fault:
                raise reply.fault
            if reply.answer:
                return Planned(pair, question, reply.answer.prediction)
        return Planned(pair, question, _given(question, pair))
    except StageflowError as reason:
        return failed(pair, reason)


def _given(question: Question, pair: Pair) -> Prediction:
    """Of a kept plan or of one by hand. Raises `InvalidInput`, `NotFound`, `PlanDoesNotFit`."""
    if pair.plan_id is None:
        whole = Partition((Stage(0, len(question.profile.layers), (0,)),))
        cut = read_cut(pair.source, whole, question.cluster.num_devices)
        return fitting(question, question.plan(BY_HAND, cut))
    kept = services.backend().plans.get(pair.plan_id).plan
    if not pair.schedule:
        return planner.judged(question, kept).prediction
    return fitting(question, question.plan(pair.source, kept.partition))


@st.cache_resource(show_spinner=False, max_entries=KEPT, hash_funcs=BY_QUESTION)
def fitting(question: Question, plan: Plan) -> Prediction:
    """What `plan` does, with recomputation where the question says so."""
    return question.fitting(with_order(question, plan))


def outcome(found: Planned, num_microbatches: int, name: str = "") -> Outcome | Failed:
    """What the pair does in a segment of about so many microbatches; by its own name, or as it
    is to be called."""
    name = name or found.name
    unit = microbatch_unit(found.plan)
    number = unit * max(1, round(num_microbatches / unit))
    try:
        return _outcome(found.question, name, found.prediction, number)
    except StageflowError as reason:
        return Failed(found.pair, name, reason)


@st.cache_resource(show_spinner="Simulating…", max_entries=KEPT, hash_funcs=BY_QUESTION)
def _outcome(
    question: Question, name: str, prediction: Prediction, num_microbatches: int
) -> Outcome:
    profile, plan = question.profile_of(prediction.plan), prediction.plan
    program, timeline = predicted_program(profile, question.cluster, plan, num_microbatches)
    return _described(question, name, prediction, program, timeline)


@st.cache_resource(show_spinner=False, max_entries=KEPT, hash_funcs=BY_QUESTION)
def ordered(question: Question, data: bytes) -> Answer:
    """The plan that keeps the order of a file. Raises as `by_order`."""
    return by_order(question, data)


def imported_outcome(question: Question, found: Imported, name: str) -> Outcome | None:
    """What a program from a file does; None where it has faults."""
    if found.timeline is None or found.prediction is None:
        return None
    return _described(question, name, found.prediction, found.program, found.timeline)


def _described(
    question: Question, name: str, prediction: Prediction, program: Program, timeline: Timeline
) -> Outcome:
    plan = prediction.plan
    sizes = PlanSizes(
        as_held(question.profile_of(plan), plan),
        plan.partition,
        question.optimizer,
        plan.shard_state,
        plan.exchange_copies,
    )
    return Outcome(
        name,
        prediction,
        program,
        timeline,
        total(idle_causes(program, timeline)),
        memory(program, timeline, sizes),
        staleness(program),
    )


def telling(found: Sequence[Planned], least: int) -> int:
    """Microbatches in which every pair makes two updates at least: in one alone schedules
    that overlap updates look like those that do not."""
    numbers = [least]
    for pair in found:
        with suppress(StageflowError):
            numbers.append(2 * microbatch_unit(pair.plan))
    return max(numbers)

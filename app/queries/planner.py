"""Answers and timelines, computed once per question while the server runs."""

from collections.abc import Iterator
from dataclasses import replace

import streamlit as st

from app.queries.background import Background
from app.server.searchers import QUICK, THOROUGH
from app.session.cache_keys import BY_QUESTION
from backend.cluster.fewer import machines
from backend.comparison.shared_cores import takes_turns
from backend.comparison.sweep import sweep
from backend.comparison.variations import Point, variations
from backend.pipeline.clock.slack import slack
from backend.pipeline.kinds import Floats
from backend.pipeline.program import Program
from backend.pipeline.schedules.catalog import schedule as schedule_named
from backend.pipeline.timeline import Timeline
from backend.planning.plan import Partition, Plan
from backend.prediction.answer import Answer, Reply, at_once, by_hand, redrawn, replies
from backend.prediction.fallback import Fallback
from backend.prediction.fallbacks import fallbacks
from backend.prediction.predict import predicted_program
from backend.prediction.question import PLANNER_NAMES, Question
from backend.prediction.shapes import steady_shape
from backend.prediction.watch import Watch
from backend.profiles.devices import Precision

MOST_WITH_SLACK = 60_000  # actions that are walked over while a page waits
KEPT, KEPT_SWEEPS, KEPT_SEARCHES = 64, 16, 256


@st.cache_resource(show_spinner=False, max_entries=KEPT_SEARCHES, hash_funcs=BY_QUESTION)
def asked(question: Question) -> Background[Reply]:
    """What the planners say, started by the first who asks: of each the last reply holds.
    `asked.clear(question)` forgets it."""
    return Background(lambda watch: refined(question, watch))


def refined(question: Question, watch: Watch) -> Iterator[Reply]:
    """What each planner that is asked says: of `best` a first answer at once, a better one at the
    end. Raises as `Searchers.search`."""
    if question.planner == "best":
        yield from QUICK.search(at_once, question, watch=watch)
    yield from THOROUGH.search(replies, question, watch=watch)


def one_by_one(question: Question) -> tuple[Question, ...]:
    """A question per planner that is asked, so that each answer is computed once, whoever else is
    asked beside it."""
    names = (question.planner,) if question.planner else PLANNER_NAMES
    return tuple(replace(question, planner=name) for name in names)


@st.cache_resource(show_spinner=False, max_entries=KEPT, hash_funcs=BY_QUESTION)
def judged(question: Question, plan: Plan) -> Answer:
    """The answer for a plan by hand. Raises `PlanDoesNotFit` and `InvalidInput`."""
    return by_hand(question, plan)


@st.cache_resource(show_spinner=False, max_entries=KEPT, hash_funcs=BY_QUESTION)
def changed(question: Question, plan: Plan, partition: Partition, codecs: str) -> Answer:
    """The answer for a plan that was changed by hand (`redrawn`). Raises likewise."""
    return redrawn(question, plan, partition, codecs)


@st.cache_resource(show_spinner=False, max_entries=KEPT, hash_funcs=BY_QUESTION)
def for_fewer(question: Question, plan: Plan) -> Background[Fallback]:
    """The plans for fewer machines of the question's cluster."""
    sizes = machines(question.cluster)
    return Background(lambda watch: THOROUGH.search(fallbacks, question, plan, sizes, watch=watch))


def predicted_timeline(question: Question, plan: Plan) -> Timeline:
    """What the plan's program does from an empty pipeline to an empty one, in the segment
    from which its figures were predicted."""
    return segment_timeline(question, plan, steady_shape(plan).num_microbatches)


def segment_timeline(question: Question, plan: Plan, num_microbatches: int) -> Timeline:
    """The same for a segment of at most `num_microbatches`. Raises `InvalidInput` where
    these are too few for the plan."""
    return _segment(question, plan, num_microbatches)[1]


@st.cache_resource(show_spinner=False, max_entries=KEPT, hash_funcs=BY_QUESTION)
def _segment(question: Question, plan: Plan, num_microbatches: int) -> tuple[Program, Timeline]:
    profile = question.profile_of(plan)
    return predicted_program(profile, question.cluster, plan, num_microbatches)


@st.cache_resource(show_spinner=False, max_entries=KEPT, hash_funcs=BY_QUESTION)
def predicted_slack(question: Question, plan: Plan) -> Floats | None:
    """The slack of each span of `predicted_timeline`. None where devices are shared, of which it
    is not known what others would do, and where there are very many."""
    program, timeline = _segment(question, plan, steady_shape(plan).num_microbatches)
    in_turns = takes_turns(question.profile_of(plan), question.cluster, plan)
    if plan.num_pipelines > 1 or in_turns or len(timeline) > MOST_WITH_SLACK:
        return None
    return slack(program, timeline)


@st.cache_resource(show_spinner=False, max_entries=KEPT_SWEEPS, hash_funcs=BY_QUESTION)
def swept(question: Question, precision: Precision = Precision.FLOAT32) -> Background[Point]:
    """The best plan on other clusters, likewise. Batches are varied where the schedule has
    them."""
    batched = not question.schedule or schedule_named(question.schedule).batched
    wanted = variations(question.cluster, question.batch, flushes=batched, precision=precision)
    return Background(
        lambda watch: THOROUGH.search(sweep, question, wanted, watch=watch), len(wanted)
    )

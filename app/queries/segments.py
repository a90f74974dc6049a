"""What was predicted of a run, and the timelines of its segments as columns."""

import streamlit as st

from app import services
from app.charts.bars import Bars, bars_of
from app.exports.last_segment import segment_bars
from app.queries import planner
from backend.comparison.other_links import other_links
from backend.comparison.shared_cores import Expectation
from backend.comparison.stragglers import Paces
from backend.errors import StageflowError
from backend.prediction.energy import Energy, energy
from backend.prediction.prediction import Prediction
from backend.prediction.question import Question
from backend.runs.history.records import TimelineKind
from backend.runs.plans import StoredPlan
from backend.runs.request.spec import TrainSpec
from backend.runs.run import Run

KEPT = 8
MOST_SIMULATED = 60_000  # actions that are simulated while a page waits


def prediction_of(run: Run) -> Prediction | None:
    """The figures that were predicted when the run's plan was kept."""
    stored = _plan_of(run)
    return stored.prediction if stored else None


def predicted_energy(run: Run) -> Energy | None:
    """Joules of a sample by the run's plan; None where watts of its devices are not known."""
    stored = _plan_of(run)
    if stored is None or stored.prediction is None:
        return None
    try:
        profile = services.backend().profiles.get(stored.profile_id).profile
    except StageflowError:
        return None
    return energy(stored.prediction, stored.cluster, profile)


def expected_of(run: Run) -> Expectation:
    """What is laid beside the run's measurement; of a run that has ended it is computed once."""
    if not run.state.is_final:
        stored, spec = _plan_of(run), run.spec
        if stored is None or not isinstance(spec, TrainSpec):
            return Expectation()
        return Expectation(stored.prediction, other_links=other_links(spec, stored.cluster))
    return _expected(services.backend().settings.sql_url, run.id, run)


@st.cache_resource(show_spinner=False, max_entries=64)
def _expected(database: str, run_id: int, _run: Run) -> Expectation:
    return services.backend().runs.expected(_run)


def paces_of(run: Run) -> Paces | None:
    """How long its ranks compute beside their plan, computed once for each new segment."""
    backend = services.backend()
    newest = max(backend.runs.spans.segments(run.id), default=None)
    if newest is None:
        return None
    return _paces(backend.settings.sql_url, run.id, newest, run.state.is_final, run)


@st.cache_resource(show_spinner=False, max_entries=64)
def _paces(database: str, run_id: int, newest: int, is_final: bool, _run: Run) -> Paces | None:
    return services.backend().runs.paces(_run)


def _plan_of(run: Run) -> StoredPlan | None:
    """The kept plan that the run was launched from, if there is one."""
    if not isinstance(run.spec, TrainSpec) or run.spec.plan_id is None:
        return None
    try:
        return services.backend().plans.get(run.spec.plan_id)
    except StageflowError:
        return None


def bars_of_run(run: Run, kind: TimelineKind, segment: int, *, closed: bool) -> Bars | None:
    """The spans of one segment; None where there are none. What is `closed` (nothing more
    comes) is read once while the server runs."""
    backend = services.backend()
    if not closed:
        return segment_bars(backend, run.id, kind, segment)
    return _closed(backend.settings.sql_url, run.id, kind, segment)


def predicted_bars(run: Run, segment: int, measured: Bars) -> Bars | None:
    """What was predicted of a measured segment: as it is stored at the run's end, before that
    simulated for as many microbatches. None where the run names no plan that is kept, and for
    a long segment of a run that has not ended."""
    stored = bars_of_run(run, "predicted", segment, closed=run.state.is_final)
    plan = _plan_of(run)
    if stored is not None or plan is None or len(measured) > MOST_SIMULATED:
        return stored
    try:
        profile = services.backend().profiles.get(plan.profile_id).profile
        number = int(measured.microbatch.max(initial=-1)) + 1
        question, asked = Question(profile, plan.cluster), plan.plan
        if isinstance(run.spec, TrainSpec):
            question = question.under(state_precision=run.spec.state_precision)
            asked = run.spec.plan
        return bars_of(planner.segment_timeline(question, asked, number))
    except StageflowError:
        return None


@st.cache_resource(show_spinner="Reading the timeline…", max_entries=KEPT)
def _closed(database: str, run_id: int, kind: TimelineKind, segment: int) -> Bars | None:
    return segment_bars(services.backend(), run_id, kind, segment)

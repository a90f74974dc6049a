"""Run: one run, live while it runs."""

import streamlit as st

from app import services
from app.components.run.attempt_view import artifact_list, attempt_view
from app.components.run.comment_view import comment_view
from app.components.run.imported_view import imported_view
from app.components.run.log_view import log_view
from app.components.run.parameter_view import parameter_view
from app.components.run.run_header import run_header, run_line
from app.components.run.run_progress import RECENT, run_progress
from app.components.run.run_use import run_use
from app.components.run.tracker_view import tracker_view
from app.components.run.training_view import training_view
from app.components.shell.boundary import guarded, run_error_box
from app.components.shell.layout import card, empty_state, missing, page_header
from app.formats import plain
from app.naming import cleared, fallback_words
from app.server.sessions import refresh_interval
from app.session import state
from app.session.state import Page, Param
from backend.runs.request.spec import ImportedSpec, TrainSpec
from backend.runs.run import Run
from backend.runs.states import RunState

REFRESH = 2.5


@missing("Run", Page.RUNS, "All runs")
def page() -> None:
    """The run that ?id= names, else the newest."""
    run = _find()
    if run is None:
        page_header("Run", "One run, live.")
        empty_state("No run yet", "Profile a model, or launch a training by a plan.", Page.MODELS)
        return
    run_header(run)
    final = run.state.is_final
    st.fragment(_live, run_every=None if final else refresh_interval(REFRESH))(
        run.id, was_final=final
    )
    run_use(run)
    comment_view(run)


def _find() -> Run | None:
    runs = services.backend().runs
    wanted = state.wanted_id(Param.ID, "run")
    if wanted is not None:
        return runs.get(wanted)
    newest = runs.list(limit=1).runs
    return newest[0] if newest else None


@guarded
def _live(run_id: int, was_final: bool) -> None:
    """All that changes while the run works; the page is drawn once more when it ends."""
    backend = services.backend()
    run = backend.runs.get(run_id)
    if run.state.is_final and not was_final:
        st.rerun()
    run_line(run)
    _message(run)
    run_progress(run, backend.runs.metrics.last(run_id, "loss", RECENT))
    if isinstance(run.spec, TrainSpec):
        training_view(run)
    if isinstance(run.spec, ImportedSpec):
        imported_view(run, run.spec)
    artifacts = backend.runs.artifacts.list(run_id)
    if artifacts:
        with card("Files"):
            artifact_list(run_id, artifacts)
    if isinstance(run.spec, TrainSpec):
        parameter_view(run.spec)
        tracker_view(run)
    attempt_view(run)
    if not isinstance(run.spec, ImportedSpec):
        with card("Log"):
            log_view(run)


def _message(run: Run) -> None:
    """Why it failed, why it waits, or where its result is."""
    if run.error is not None and run.state is RunState.FAILED:
        run_error_box(run.error)
    if run.state is RunState.CANCELLED and run.started_at is None:
        st.info(
            "Cancelled before it started: nothing was run. Retry runs the same again.",
            icon=":material/block:",
        )
    if run.fallbacks and not run.state.is_final:
        st.caption(plain(f"{fallback_words(run.fallbacks)}."))
    if told := services.backend().runs.watched_in_vain(run):
        st.warning(plain(told), icon=":material/visibility_off:")
    if told := cleared(run, state.zone()):
        st.info(told, icon=":material/auto_delete:")
    reason = services.backend().runs.why_waiting(run)
    if reason:
        st.warning(plain(reason), icon=":material/hourglass_empty:")
    if run.summary.profile_id is not None:
        st.success(
            "The profile is ready. Look at its layers, then plan it.", icon=":material/check:"
        )


page()

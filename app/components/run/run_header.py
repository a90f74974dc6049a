"""What run this is, and what can be done with it."""

from dataclasses import replace

import streamlit as st

from app import services
from app.components.launch.resume_form import resume_form
from app.components.runs.run_selection import change_labels, forget
from app.components.runs.run_words import plan_label, state_badge, took
from app.components.shell.allowed import closed, why_not
from app.components.shell.boundary import guarded
from app.components.shell.confirm import confirm
from app.components.shell.download import download
from app.components.shell.layout import page_header
from app.exports.catalog import EXPORTS, Export
from app.formats import moment, plain
from app.naming import plan_words, rule_words
from app.session import state
from app.session.links import page_link
from app.session.state import Page
from backend.profiles.state_precision import STATE_PRECISIONS
from backend.runs.history.labels import MAX_NOTE, Change, tidy
from backend.runs.request.spec import ImportedSpec, TrainSpec
from backend.runs.run import Run

IMPORTED = "The run was imported: there is nothing to launch again."


def run_header(run: Run) -> None:
    """Title and actions; the changing part is `run_line`."""
    with page_header(f"{run.name} · run {run.id}"):
        _onwards(run)
        _actions(run)
        if not run.state.is_final:
            _watch(run)
            _cancel(run)


def _onwards(run: Run) -> None:
    if run.summary.profile_id is not None:
        if st.button("Open profile", type="primary", icon=":material/bar_chart:"):
            state.go(Page.PROFILE, id=run.summary.profile_id)
    elif (
        isinstance(run.spec, TrainSpec)
        and run.spec.plan_id is not None
        and st.button("Open plan", icon=":material/account_tree:")
    ):
        state.go(Page.PLAN, plan=run.spec.plan_id)


def _cancel(run: Run) -> None:
    def cancel() -> None:
        services.backend().runs.cancel(run.id)
        state.done(f"Run {run.id} is being cancelled")

    confirm(
        "Cancel",
        "stop_circle",
        "End this run and all its processes? What it has recorded is kept.",
        "Cancel the run",
        cancel,
        key="cancel",
        barred="The run is being cancelled." if run.cancel_requested else why_not(run.project_id),
    )


def run_line(run: Run) -> None:
    """State, attempt, plan, node, when: one line."""
    zone = state.zone()
    parts = [f"attempt {run.attempt}"] if run.attempt else []
    parts += [f"**{plain(plan_label(run))}**"]
    parts += map(plain, _plan(run))
    parts += [f"state {kept}"] if (kept := _kept(run)) else []
    if isinstance(run.spec, TrainSpec):
        parts += [*rule_words(run.spec.optimizer), f"seed {run.spec.seed}"]
    parts += [f"on {plain(run.node)}"] if run.node else []
    if run.started_at:
        parts += [f"started {moment(run.started_at, zone)}", took(run)]
    else:
        parts += [f"submitted {moment(run.created_at, zone)}"]
    parts += [f"by {plain(run.owner)}"] if run.owner else []
    parts += [f"sandbox: {run.sandbox}"] if run.sandbox else []
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        state_badge(run.state)
        for tag in run.tags:
            st.badge(plain(tag), icon=":material/sell:", color="blue")
        st.caption(" · ".join(parts))
        if run.origin_id is not None:
            page_link(Page.RUN, f"from run {run.origin_id}", id=run.origin_id)
        if sweep := services.backend().sweeps.of_run(run.id):
            page_link(Page.SWEEPS, f"of sweep {sweep}", id=sweep)
    if run.note:
        st.caption(plain(run.note))


def _plan(run: Run) -> list[str]:
    """What else the plan is; how it keeps state is told beside its precision."""
    if not isinstance(run.spec, TrainSpec):
        return []
    return plan_words(replace(run.spec.plan, shard_state=False), run.spec.plan.microbatch)


def _kept(run: Run) -> str:
    """How a training keeps its state, in which precision and whether sharded; "" where it is as
    usual."""
    if not isinstance(run.spec, TrainSpec):
        return ""
    precision = run.spec.state_precision
    said = [STATE_PRECISIONS[precision].title] if precision != "float32" else []
    return ", ".join([*said, "sharded over replicas"] if run.spec.plan.shard_state else said)


def _actions(run: Run) -> None:
    """Buttons for the head of the run's page; those that change something for who may."""
    barred = why_not(run.project_id)
    again = barred or (IMPORTED if isinstance(run.spec, ImportedSpec) else None)
    _labels(run, barred)
    with st.popover("Export", icon=":material/download:"):
        has_timeline = bool(services.backend().runs.spans.segments(run.id))
        for export in EXPORTS.values():
            _export(run, export, has_timeline)
    if st.button(
        "Clone",
        icon=":material/content_copy:",
        help=again or "Launch it again, with changes",
        disabled=again is not None,
    ):
        state.go(Page.LAUNCH, run=run.id)
    if run.state.is_final:
        resume_form(run, barred)
        _retry(run, again)
        _delete(run, barred)


def _export(run: Run, export: Export, has_timeline: bool) -> None:
    download(
        export.title,
        services.later(lambda its: export.write(its, its.runs.get(run.id))),
        export.file_name(run),
        export.media,
        key=f"export-{export.name}",
        barred=None if has_timeline or not export.needs_timeline else "The run has no timeline.",
        in_menu=True,
    )


def _retry(run: Run, barred: str | None) -> None:
    confirm(
        "Retry",
        "replay",
        "Run the same again, with the same values, as a new run?",
        "Run it again",
        lambda: state.go(Page.RUN, id=services.backend().runs.retry(run.id).id),
        key="retry",
        barred=barred,
    )


def _delete(run: Run, barred: str | None) -> None:
    def delete() -> None:
        services.backend().runs.delete(run.id)
        forget([run.id])
        state.notify(f"Run {run.id} is deleted")
        state.go(Page.RUNS)

    confirm(
        "Delete",
        "delete",
        "Delete this run for good, with its log, metrics, timelines and files? "
        "A profile that it measured stays.",
        "Delete the run",
        delete,
        key="delete",
        barred=barred,
    )


def _watch(run: Run) -> None:
    """Of a run that has not ended: be told of it, or not."""
    notices = services.backend().notices
    if not notices.list():
        return
    told = notices.is_told(run)
    st.button(
        "Notified" if told else "Notify me",
        icon=":material/notifications_active:" if told else ":material/notifications:",
        help="You get notifications about this run. Press to stop them."
        if told
        else "Get notifications about this run",
        on_click=guarded(notices.watch),
        args=(run.id, not told),
    )


def _labels(run: Run, barred: str | None) -> None:
    st.button(
        "Starred" if run.starred else "Star",
        icon=":material/star:" if run.starred else ":material/star_border:",
        help=barred or ("Remove the star" if run.starred else "Mark the run with a star"),
        disabled=barred is not None,
        on_click=change_labels,
        args=([run.id], Change(starred=not run.starred)),
    )
    notes = st.popover("Notes", icon=":material/edit_note:", **closed(barred))
    with notes, st.form("labels", border=False):
        tags = st.text_input("Tags, separated by commas", ", ".join(run.tags))
        note = st.text_area("Note", run.note, max_chars=MAX_NOTE, height=140)
        if st.form_submit_button("Save", type="primary"):
            _save(run.id, tags, note)


@guarded
def _save(run_id: int, tags: str, note: str) -> None:
    change_labels([run_id], Change(note=note, tags=tidy(tags.split(","))))
    state.done("Saved")

"""What can be done with one run beside looking at it: export, launch, resume, delete, label."""

import streamlit as st

from app import services
from app.components.launch.resume_form import resume_form
from app.components.runs.run_selection import change_labels, forget
from app.components.shell.allowed import closed, why_not
from app.components.shell.boundary import guarded
from app.components.shell.confirm import confirm
from app.components.shell.download import download
from app.exports.catalog import EXPORTS, Export
from app.session import state
from app.session.state import Page
from backend.runs.history.labels import MAX_NOTE, Change, tidy
from backend.runs.run import Run


def run_actions(run: Run) -> None:
    """Buttons for the head of the run's page; those that change something for who may."""
    barred = why_not(run.project_id)
    _labels(run, barred)
    with st.popover("Export", icon=":material/download:"):
        has_timeline = bool(services.backend().runs.segments(run.id))
        for export in EXPORTS.values():
            _export(run, export, has_timeline)
    if st.button(
        "Clone",
        icon=":material/content_copy:",
        help=barred or "Launch it again, with changes",
        disabled=barred is not None,
    ):
        state.go(Page.LAUNCH, run=run.id)
    if run.state.is_final:
        resume_form(run, barred)
        _retry(run, barred)
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

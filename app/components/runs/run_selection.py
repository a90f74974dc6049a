"""The runs that a visitor has ticked, and what can be done with all of them at once."""

from collections.abc import Callable, Iterable, Sequence

import streamlit as st

from app import services
from app.components.shell.allowed import why_not
from app.components.shell.boundary import guarded
from app.components.shell.tick import tick_box, ticked
from app.formats import count
from app.session import state
from app.session.state import Key, Page
from backend.runs.history.labels import Change
from backend.runs.run import Run

MOST = 10
"""Runs that can be compared at once: as many as there are colours to tell apart."""
GONE = "Their logs, metrics, timelines and files are gone for good; profiles stay."


def selected() -> set[int]:
    """The ids, for as long as the visit lasts; on every page of the list."""
    return ticked(Key.SELECTED)


def forget(run_ids: Iterable[int]) -> None:
    """These runs are ticked no longer: they are deleted."""
    selected().difference_update(run_ids)


def pick_box(run: Run) -> None:
    """The box in front of a run."""
    tick_box(f"Select run {run.id}", f"pick-{run.id}", Key.SELECTED, {run.id})


def pick_page_box(runs: Sequence[Run]) -> None:
    """The box in the heading: all of this page, or none."""
    tick_box("Select all on this page", "pick-page", Key.SELECTED, {run.id for run in runs})


def selection_bar() -> None:
    """What can be done with the ticked runs; nothing where none is ticked."""
    if not selected():
        return
    runs = services.backend().runs.several(sorted(selected()))
    with st.container(horizontal=True, vertical_alignment="center", key="selection", gap="small"):
        st.markdown(f"**{count(len(runs))} selected**")
        _compare(runs)
        if barred := _barred(runs):
            st.caption(barred)
            st.button("Clear", type="tertiary", on_click=selected().clear)
            return
        _star(runs)
        _tag(runs)
        _each("Cancel", "stop_circle", [run for run in runs if not run.state.is_final], _cancel)
        ended = [run for run in runs if run.state.is_final]
        _each("Retry", "replay", ended, _retry)
        _each("Delete", "delete", ended, _delete, GONE)
        st.button("Clear", type="tertiary", on_click=selected().clear)


def _barred(runs: Sequence[Run]) -> str | None:
    """Why these runs can be compared and nothing more, where one of them may not be changed."""
    projects = {run.project_id for run in runs}
    return next(filter(None, map(why_not, projects)), None)


def _compare(runs: Sequence[Run]) -> None:
    trained = [run.id for run in runs if run.is_training]
    if st.button(
        "Compare",
        icon=":material/compare:",
        type="primary",
        disabled=not 2 <= len(trained) <= MOST,
        help=f"2 to {MOST} training runs side by side",
    ):
        state.go(Page.COMPARE, runs=",".join(map(str, trained)))


def _star(runs: Sequence[Run]) -> None:
    all_starred = all(run.starred for run in runs)
    st.button(
        "Unstar" if all_starred else "Star",
        icon=":material/star:",
        on_click=change_labels,
        args=([run.id for run in runs], Change(starred=not all_starred)),
    )


def _tag(runs: Sequence[Run]) -> None:
    ids = [run.id for run in runs]
    with st.popover("Tag", icon=":material/sell:"):
        with st.form("tag-selected", border=False, clear_on_submit=True):
            st.text_input("Add a tag", max_chars=40, placeholder="baseline", key="new-tag")
            st.form_submit_button("Add", type="primary", on_click=_add_tag, args=(ids,))
        for tag in sorted({tag for run in runs for tag in run.tags}):
            st.button(
                f"Remove “{tag}”",
                key=f"untag-{tag}",
                icon=":material/close:",
                type="tertiary",
                on_click=change_labels,
                args=(ids, Change(remove=(tag,))),
            )


@guarded
def change_labels(ids: Sequence[int], change: Change) -> None:
    """Change star, note or tags of these runs."""
    services.backend().labels.change(ids, change)


def _add_tag(ids: Sequence[int]) -> None:
    change_labels(ids, Change(add=(st.session_state["new-tag"],)))


def _each(
    label: str, icon: str, fit: Sequence[Run], act: Callable[[int], object], meaning: str = ""
) -> None:
    """An action on those runs alone that are in a state for it, once it is confirmed."""
    with st.popover(
        label,
        icon=f":material/{icon}:",
        disabled=not fit,
        help=None if fit else f"{label} is not possible for runs in these states.",
    ):
        others = len(selected()) - len(fit)
        rest = f" The other {others} are left as they are." if others else ""
        st.markdown(f"{label} {count(len(fit), 'run')}?{rest} {meaning}".strip())
        st.button(
            f"{label} {count(len(fit), 'run')}",
            type="primary",
            key=f"confirmed-{label}",
            on_click=_act_on,
            args=(label, [run.id for run in fit], act),
        )


@guarded
def _act_on(label: str, ids: Sequence[int], act: Callable[[int], object]) -> None:
    for run_id in ids:
        act(run_id)
    selected().clear()
    state.notify(f"{label}: {count(len(ids), 'run')}")


def _cancel(run_id: int) -> object:
    return services.backend().runs.cancel(run_id)


def _retry(run_id: int) -> object:
    return services.backend().runs.retry(run_id)


def _delete(run_id: int) -> object:
    return services.backend().runs.delete(run_id)

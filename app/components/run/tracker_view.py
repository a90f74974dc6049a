"""Where a run is followed beside the dashboard: its page there, or why it is not there."""

from collections.abc import Callable

import streamlit as st

from app import services
from app.components.shell.allowed import closed, why_not
from app.components.shell.boundary import guarded
from app.components.shell.layout import card
from app.formats import plain
from app.naming import followed_words
from backend.runs.history.followed import Followed, Following
from backend.runs.run import Run

NOBODY = "Nothing is sent there now: start `stageflow tracker send` beside the dashboard."


def tracker_view(run: Run) -> None:
    """A line for each tracker that settings name or that has the run; nothing without any."""
    trackers = services.backend().trackers
    found = {each.tracker: each for each in trackers.list(run.id)}
    if not (found or trackers.known):
        return
    with card("Experiment trackers", "what is measured is sent there"):
        for name in dict.fromkeys((*trackers.known, *found)):
            _line(run, name, found.get(name))


def _line(run: Run, name: str, followed: Followed | None) -> None:
    trackers = services.backend().trackers
    known = trackers.known.get(name)
    words = followed_words(followed) if followed else "not followed there"
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown(
            f"**{known.title if known else name}** &ensp;:gray[:small[{plain(words)}]]",
            width="stretch",
        )
        if followed and followed.place.url:
            st.link_button("Open", followed.place.url, icon=":material/open_in_new:")
        _button(run, name, followed, known is not None)
    if followed and followed.place.remote and not followed.place.url:
        st.caption(plain(followed.place.remote))
    if followed and followed.error:
        st.warning(
            plain(f"{followed.error}. {followed.advice}".strip()), icon=":material/sync_problem:"
        )
    if followed and followed.state is Following.ON and not trackers.is_served(name):
        st.caption(NOBODY if known else "STAGEFLOW_TRACKERS does not name it any more.")


def _button(run: Run, name: str, followed: Followed | None, is_known: bool) -> None:
    trackers, barred = services.backend().trackers, why_not(run.project_id)
    if followed and followed.state is Following.ON:
        label, act = "Stop", trackers.stop
    elif is_known and (followed is None or followed.state is not Following.DONE):
        label, act = "Follow" if followed is None else "Follow again", trackers.follow
    else:
        return
    key = f"track-{name}"
    st.button(label, key=key, on_click=_do, args=(act, run.id, name), **closed(barred))


@guarded
def _do(act: Callable[[int, str], Followed], run_id: int, name: str) -> None:
    act(run_id, name)

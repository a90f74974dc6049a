"""Where a person is told of runs: the places, and a form for another one."""

import streamlit as st

from app.components.shell.boundary import guarded
from app.components.shell.grid import Column, grid, small, text
from app.formats import plain, sentence
from app.session import state
from backend.runs.history.notices import MAX_ADDRESS, NoticePlace, PlaceKind, RunEvent
from backend.services.people.notices import NoticeService

KINDS = {
    "Mail": PlaceKind.MAIL,
    "Chat": PlaceKind.CHAT,
    "Webhook": PlaceKind.WEBHOOK,
}
RUNS = {"that I launched": False, "that I see": True}
EXAMPLES = (
    "Mail: an address. Chat: the incoming webhook of Slack, Mattermost, Rocket.Chat, Google Chat "
    "or Discord. Webhook: an address that takes JSON with `title` and `message`. Addresses inside "
    "the host's own network are refused unless the operator allows them."
)


def place_list(notices: NoticeService) -> None:
    """A row each, with a test and the way to remove it."""
    found = notices.list()
    if not found:
        st.caption("You get no notifications yet. Add a place below.")
        return

    def act(place: NoticePlace) -> None:
        with st.container(horizontal=True, gap="small"):
            if st.button("Send a test", key=f"try-{place.id}", type="tertiary"):
                _try(notices, place)
            if st.button("Remove", key=f"remove-{place.id}", type="tertiary"):
                notices.remove(place.id)
                state.done("The place is removed")

    grid(
        "places",
        (
            text("Kind", 0.8, lambda place: sentence(place.kind.value)),
            small("Address", 2.4, lambda place: place.hint),
            small("Events", 2.4, lambda place: ", ".join(place.events)),
            small("Of runs", 1.2, lambda place: "all I see" if place.runs == "all" else "mine"),
            Column("", 1.8, act),
        ),
        found,
    )


@guarded
def _try(notices: NoticeService, place: NoticePlace) -> None:
    with st.spinner("Sending"):
        fault = notices.try_now(place)
    if fault:
        st.error(plain(f"Not delivered: {fault}."), icon=":material/error:")
    else:
        st.success("Delivered.", icon=":material/check:")


@guarded
def place_form(notices: NoticeService) -> None:
    """Kind, address, events and runs of a new place."""
    kinds = [name for name in KINDS if notices.takes_mail or name != "Mail"]
    with st.form("new-place", border=False):
        left, right = st.columns(2)
        kind = left.selectbox("Kind", kinds)
        address = right.text_input("Address", max_chars=MAX_ADDRESS, placeholder="https://…")
        events = left.pills(
            "Notify me when a run has",
            list(RunEvent),
            selection_mode="multi",
            default=list(RunEvent),
            format_func=_event,
        )
        runs = right.radio("Of the runs", list(RUNS), horizontal=True)
        st.caption(EXAMPLES)
        if not notices.takes_mail:
            st.caption("Mail is not set up: the operator has configured no mail server.")
        if not st.form_submit_button("Add", type="primary", icon=":material/add_alert:"):
            return
    notices.add(KINDS[kind], address, tuple(events), RUNS[runs])
    state.done("Notifications go there from now on")


def _event(event: RunEvent) -> str:
    return "reached its target" if event is RunEvent.TARGET else event.value

"""The browsers in which somebody is signed in."""

import streamlit as st

from app.components.shell.grid import Column, grid
from app.formats import NOTHING, ago, plain
from app.gate.visitors import forget
from backend.people.person import Session
from backend.services.people.accounts import AccountService


def session_list(accounts: AccountService, person_id: int, name: str) -> None:
    """One row per session, the newest first, with the way to end it."""

    def end(session: Session) -> None:
        if st.button("End", key=f"end-session-{session.id}", type="tertiary"):
            accounts.end_session(person_id, name, session.id)
            forget()
            st.rerun()

    grid(
        "sessions",
        (
            Column("Browser", 4.0, lambda s: st.markdown(f":small[{plain(s.client) or NOTHING}]")),
            Column("Signed in", 1.2, lambda s: st.markdown(ago(s.created_at))),
            Column("Last used", 1.2, lambda s: st.markdown(ago(s.seen_at))),
            Column("", 0.8, end),
        ),
        accounts.sessions(person_id),
    )

"""The browsers in which somebody is signed in."""

import streamlit as st

from app.components.shell.grid import Column, grid, small, when
from app.gate.visitors import forget
from backend.people.accounts import AccountService
from backend.people.person import Session


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
            small("Browser", 4.0, lambda s: s.client),
            when("Signed in", 1.2, lambda s: s.created_at),
            when("Last used", 1.2, lambda s: s.seen_at),
            Column("", 0.8, end),
        ),
        accounts.sessions(person_id),
    )

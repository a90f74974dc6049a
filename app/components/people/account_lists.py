"""What belongs to a person: their tokens, whose secrets are shown once, and their browsers."""

from collections.abc import Mapping, Sequence

import streamlit as st

from app.components.shell.grid import Column, grid, small, text, when
from app.formats import NOTHING, plain
from app.gate.visitors import forget
from backend.people.person import Scope, Session, Token
from backend.people.project import Project
from backend.services.people.accounts import AccountService
from backend.services.people.team import TokenService

DAYS = {"30 days": 30, "90 days": 90, "a year": 365, "never": None}
SCOPES = {"read only": Scope.READ, "read and write": Scope.WRITE}


def token_form(tokens: TokenService, projects: Sequence[Project]) -> None:
    """Name, scope, projects and life of a new token; afterwards its secret, in a box to copy."""
    names = {0: "all of mine"} | {each.id: plain(each.name) for each in projects}
    with st.form("new-token", border=False):
        cells = st.columns([1.7, 1.3, 1.4, 1.2, 1.4], vertical_alignment="bottom")
        name = cells[0].text_input("Name", placeholder="what it is for", max_chars=64)
        scope = cells[1].selectbox("Permission", list(SCOPES))
        project = cells[2].selectbox("Projects", list(names), format_func=names.__getitem__)
        days = cells[3].selectbox("Expires after", list(DAYS), index=1)
        asked = cells[4].form_submit_button("Create token", icon=":material/key:")
    if asked:
        _, secret = tokens.add(name, SCOPES[scope], DAYS[days], project or None)
        st.success("Copy the token now: it is not shown again.", icon=":material/key:")
        st.code(secret, language=None)


def token_list(tokens: TokenService, projects: Sequence[Project]) -> None:
    """One row per token, the newest first."""
    names = {each.id: plain(each.name) for each in projects}
    found = tokens.list()
    if not found:
        st.caption("No token yet.")
        return

    def revoke(token: Token) -> None:
        if st.button("Revoke", key=f"revoke-{token.id}", type="tertiary"):
            tokens.revoke(token.id)
            st.rerun()

    grid(
        "tokens",
        (
            text("Name", 2.0, lambda t: f"**{plain(t.name)}**"),
            text("Token", 1.6, lambda t: f":small[`{t.hint}…`]"),
            text("Permission", 1.1, lambda t: t.scope.value),
            text("Projects", 1.0, lambda t: _projects(t, names)),
            when("Created", 1.1, lambda t: t.created_at),
            when("Last used", 1.1, lambda t: t.used_at),
            text("Expires", 1.2, _end),
            Column("", 0.8, revoke),
        ),
        found,
    )


def _projects(token: Token, names: Mapping[int, str]) -> str:
    return "all" if token.project is None else names.get(token.project, NOTHING)


def _end(token: Token) -> str:
    return f"{token.expires_at:%Y-%m-%d}" if token.expires_at else NOTHING


def session_list(accounts: AccountService, person_id: int, name: str) -> None:
    """One row per session, the newest first, with the way to end it."""

    def end(session: Session) -> None:
        if st.button("End session", key=f"end-session-{session.id}", type="tertiary"):
            accounts.end_session(person_id, name, session.id)
            forget()
            st.rerun()

    grid(
        "sessions",
        (
            small("Browser", 4.0, lambda s: s.client),
            when("Signed in", 1.2, lambda s: s.created_at),
            when("Last used", 1.2, lambda s: s.seen_at),
            Column("", 1.2, end),
        ),
        accounts.sessions(person_id),
    )

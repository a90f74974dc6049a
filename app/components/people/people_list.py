"""The team: roles, invitations, and who may come in."""

from collections.abc import Sequence
from typing import Literal

import streamlit as st

from app.components.shell.boundary import guarded
from app.components.shell.grid import Column, grid, text, when
from app.formats import plain
from app.gate.rules import WELCOME
from app.gate.visitors import forget
from app.naming import person_state
from backend.people.person import Person
from backend.people.rights import Role
from backend.services.people.team import TeamService

ROLES = [role.value for role in Role]
Colour = Literal["green", "orange", "gray"]
COLOURS: dict[str, Colour] = {"active": "green", "invited": "orange", "disabled": "gray"}


def invite_form(team: TeamService, address: str) -> None:
    """Name and role of somebody new; afterwards the link to give them."""
    with st.form("invite", border=False):
        cells = st.columns([2.4, 1.4, 1.0], vertical_alignment="bottom")
        name = cells[0].text_input("Name", placeholder="the name they sign in with", max_chars=64)
        role = cells[1].selectbox("Role", ROLES, index=ROLES.index(Role.EDITOR.value))
        asked = cells[2].form_submit_button("Invite", icon=":material/person_add:")
    if asked:
        person, link = team.add(name, Role(role))
        _show(person.name, address, link)


def people_list(team: TeamService, people: Sequence[Person], address: str) -> None:
    """One row per person, by name."""

    def role(person: Person) -> None:
        key = f"role-{person.id}-{person.role.value}"
        chosen = st.selectbox(
            "Role", ROLES, ROLES.index(person.role.value), key=key, label_visibility="collapsed"
        )
        if chosen != person.role.value:
            team.change(person.name, role=Role(chosen))
            forget()
            st.rerun()

    def acts(person: Person) -> None:
        with st.container(horizontal=True, horizontal_alignment="right", gap="small"):
            if st.button("New link", key=f"link-{person.id}", type="tertiary"):
                _new_link(team, person, address)
            word = "Enable" if person.disabled else "Disable"
            if st.button(word, key=f"able-{person.id}", type="tertiary"):
                team.change(person.name, disabled=not person.disabled)
                forget()
                st.rerun()

    grid(
        "people",
        (
            text("Name", 2.2, lambda p: f"**{plain(p.name)}**"),
            Column("State", 1.0, _state),
            Column("Role", 1.4, role),
            when("Added", 1.2, lambda p: p.created_at),
            Column("", 2.0, acts),
        ),
        people,
    )


def _state(person: Person) -> None:
    word = person_state(person)
    st.badge(word, color=COLOURS[word])


@st.dialog("New link")
@guarded
def _new_link(team: TeamService, person: Person, address: str) -> None:
    st.markdown(f"{plain(person.name)} sets a new password with it. The old one works until then.")
    if st.button("Create link", type="primary"):
        _show(person.name, address, team.invite(person.name))


def _show(name: str, address: str, link: str) -> None:
    st.success(f"Give {plain(name)} this link. It works once, for 3 days.", icon=":material/link:")
    st.code(f"{address}{WELCOME}?link={link}", language=None, wrap_lines=True)

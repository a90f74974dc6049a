"""The projects, and the way to make one."""

from collections.abc import Sequence
from typing import NoReturn

import streamlit as st

from app.components.shell.allowed import closed
from app.components.shell.grid import Column, grid, small, text, when
from app.formats import plain
from app.session import state
from app.session.state import Param
from backend.people.project import Project
from backend.people.rights import Right, Role
from backend.services.people.access import Access
from backend.services.people.projects import ProjectService


def show(project_id: int | None) -> NoReturn:
    """Go on with one project; None: with all."""
    state.put(Param.ID, project_id)
    st.rerun()


def project_form(projects: ProjectService, access: Access) -> None:
    """For those who decide in the team."""
    denied = (
        None if access.actor.may(Right.MANAGE) else "Administrators of the team create projects."
    )
    with st.form("new-project", border=False):
        cells = st.columns([3.0, 1.2], vertical_alignment="bottom")
        name = cells[0].text_input("Name", max_chars=64, disabled=bool(denied))
        asked = cells[1].form_submit_button(
            "Create project", icon=":material/add:", **closed(denied)
        )
    if asked:
        made = projects.add(name)
        state.notify(f"{made.name} is created")
        show(made.id)


def project_list(projects: Sequence[Project], access: Access) -> None:
    """One row per project, the first one first."""
    grid(
        "projects",
        (
            Column("Project", 2.6, _name),
            text("Your role", 1.0, lambda p: role_in(access, p.id)),
            Column("State", 1.0, _state),
            small("Limits", 2.4, quota_words),
            when("Created", 1.1, lambda p: p.created_at),
        ),
        projects,
    )


def role_in(access: Access, project_id: int) -> str:
    """The strongest role whose rights this actor has there."""
    for right, role in ((Right.MANAGE, Role.ADMIN), (Right.EDIT, Role.EDITOR)):
        if access.may(right, project_id):
            return role.value
    return Role.VIEWER.value


def quota_words(project: Project) -> str:
    """As "2 runs, 8 devices"; "no limit" without one."""
    quota = project.quota
    named = ((quota.running, "runs"), (quota.devices, "devices"), (quota.queued, "queued"))
    parts = [f"{number} {word}" for number, word in named if number is not None]
    return ", ".join(parts) or "no limit"


def _name(project: Project) -> None:
    if st.button(f"**{plain(project.name)}**", type="tertiary", key=f"open-{project.id}"):
        show(project.id)


def _state(project: Project) -> None:
    if project.archived:
        st.badge("archived", color="gray")
    else:
        st.badge("open", color="green")

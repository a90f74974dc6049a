"""One project: its name, members, limits, and how long its runs keep what they recorded."""

from collections.abc import Sequence

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from app.components.project.project_list import show
from app.components.shell.allowed import closed
from app.components.shell.grid import Column, grid, text
from app.components.shell.layout import card
from app.formats import count, plain
from app.gate.visitors import forget
from app.session import state
from backend.people.project import DEFAULT_PROJECT, Member, Project, Quota, Retention
from backend.people.rights import Right, Role
from backend.services.people.access import Access
from backend.services.people.projects import ROLES, ProjectService

NAMES = [role.value for role in ROLES]
GIB = 1024**3


def project_view(projects: ProjectService, access: Access, project: Project) -> None:
    """What the visitor may not change stands there, disabled, with the reason."""
    denied = access.why_not(Right.MANAGE, project.id)
    members = projects.members(project.id)
    with card("Members", count(len(members), "person", "people")):
        if project.id == DEFAULT_PROJECT:
            st.caption("The first project is everybody's: here the roles of the team hold.")
        elif not denied:
            _member_form(projects, project)
        _members(projects, project, members, bool(denied) or project.id == DEFAULT_PROJECT)
    team = None if access.actor.may(Right.MANAGE) else "Administrators of the team set limits."
    with card("Limits", "what the project may use at once; empty = no limit"):
        _quota_form(projects, project, team)
    with card("Retention", "how long ended runs keep logs, timelines and checkpoints"):
        _retention_form(projects, project, denied)
    with card("Name"):
        _name_form(projects, project, denied)


def _member_form(projects: ProjectService, project: Project) -> None:
    with st.form("member", border=False):
        cells = st.columns([2.4, 1.4, 1.0], vertical_alignment="bottom")
        name = cells[0].text_input("Person", placeholder="the name they sign in with", max_chars=64)
        role = cells[1].selectbox("Role", NAMES, NAMES.index(Role.EDITOR.value))
        asked = cells[2].form_submit_button("Add", icon=":material/person_add:")
    if asked:
        _set_role(projects, project, name, Role(role))


def _members(
    projects: ProjectService, project: Project, members: Sequence[Member], fixed: bool
) -> None:
    def role(member: Member) -> None:
        if fixed:
            st.markdown(member.role.value)
            return
        key = f"member-{member.name}-{member.role.value}"
        chosen = st.selectbox(
            "Role", NAMES, NAMES.index(member.role.value), key=key, label_visibility="collapsed"
        )
        if chosen != member.role.value:
            _set_role(projects, project, member.name, Role(chosen))

    def out(member: Member) -> None:
        if not fixed and st.button("Remove", key=f"out-{member.name}", type="tertiary"):
            _set_role(projects, project, member.name, None)

    grid(
        "members",
        (
            text("Name", 3.0, lambda m: f"**{plain(m.name)}**"),
            Column("Role", 1.4, role),
            Column("", 1.0, out),
        ),
        members,
    )


def _set_role(projects: ProjectService, project: Project, name: str, role: Role | None) -> None:
    projects.set_role(project.id, name, role)
    forget()
    st.rerun()


def _quota_form(projects: ProjectService, project: Project, denied: str | None) -> None:
    quota = project.quota
    with st.form("quota", border=False):
        cells = st.columns(5, vertical_alignment="bottom")
        running = _number(cells[0], "Running runs", quota.running, denied)
        devices = _number(cells[1], "Devices", quota.devices, denied)
        queued = _number(cells[2], "Queued runs", quota.queued, denied)
        size = cells[3].number_input(
            "Files, GiB",
            0.0,
            None,
            None if quota.bytes is None else quota.bytes / GIB,
            disabled=bool(denied),
        )
        share = cells[4].number_input(
            "Share", 0.01, 1000.0, quota.share, disabled=bool(denied), help=SHARE
        )
        if st.form_submit_button("Set limits", **closed(denied)):
            most = None if size is None else int(size * GIB)
            projects.limit(project.id, Quota(running, devices, queued, most, share))
            state.done("The limits are set")


SHARE = (
    "Free devices go to the project that uses least of its share; share 2 gets twice as many as 1."
)


def _number(cell: DeltaGenerator, label: str, value: int | None, denied: str | None) -> int | None:
    found = cell.number_input(label, 0, None, value, step=1, disabled=bool(denied))
    return None if found is None else int(found)


def _retention_form(projects: ProjectService, project: Project, denied: str | None) -> None:
    kept = project.retention
    with st.form("retention", border=False):
        cells = st.columns(3, vertical_alignment="bottom")
        days = _number(cells[0], "Days (empty = for ever)", kept.days, denied)
        last = _number(cells[1], "Newest runs kept in full", kept.last, denied)
        starred = cells[2].checkbox(
            "Keep starred runs in full", kept.starred, disabled=bool(denied)
        )
        if st.form_submit_button("Set retention", **closed(denied)):
            projects.retain(project.id, Retention(days, last or 0, starred))
            state.done("The rule is set and applied within an hour")


def _name_form(projects: ProjectService, project: Project, denied: str | None) -> None:
    with st.form("rename", border=False):
        cells = st.columns([3.0, 1.0], vertical_alignment="bottom")
        name = cells[0].text_input("Name", project.name, max_chars=64, disabled=bool(denied))
        asked = cells[1].form_submit_button("Rename", **closed(denied))
    if asked:
        projects.rename(project.id, name)
        state.done("The project has a new name")
    if project.id == DEFAULT_PROJECT:
        return
    word = "Restore" if project.archived else "Archive"
    if st.button(word, icon=":material/archive:", disabled=bool(denied), help=denied or ARCHIVED):
        projects.archive(project.id, not project.archived)
        state.done(f"{project.name} is {'open' if project.archived else 'archived'}")


ARCHIVED = "Its contents are kept; nothing new can be added."


def back() -> None:
    """The way from one project to all."""
    if st.button("All projects", icon=":material/arrow_back:", type="tertiary"):
        show(None)

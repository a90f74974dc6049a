"""Which project the visitor works in: chosen in the sidebar where there are several."""

import streamlit as st

from app import services
from app.formats import plain
from app.session import state
from app.session.state import Param
from backend.people.project import Project


def project_chooser() -> None:
    """A link that names a project wins, then what was chosen in this visit, then the first that
    they see. Whoever sees one alone is asked nothing."""
    visitor = services.visitor()
    found = {each.id: each for each in visitor.projects.list()}
    if len(found) < 2:
        state.choose_project(None)
        return
    wanted = next((id_ for id_ in state.wanted_projects() if id_ in found), visitor.access.home)
    numbers = sorted(found, key=lambda number: found[number].archived)
    chosen = st.sidebar.selectbox(
        "Project", numbers, numbers.index(wanted), lambda number: _name(found[number])
    )
    state.choose_project(chosen)
    state.put(Param.PROJECT, None if chosen == visitor.access.home else chosen)
    if chosen != wanted:
        st.rerun()


def _name(project: Project) -> str:
    return plain(project.name) + (" (archived)" if project.archived else "")

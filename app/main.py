"""The frame around every page: configuration, style, navigation, the error boundary."""

from pathlib import Path

import streamlit as st

from app import services
from app.components.shell.boundary import boundary
from app.components.shell.load_ahead import load_ahead
from app.components.shell.project_chooser import project_chooser
from app.components.shell.search_everything import search_everything
from app.components.shell.signed_in import signed_in
from app.components.shell.unknown_page import unknown_page
from app.server.page_slots import page_slot
from app.session import state
from app.session.links import named_page
from app.session.state import Page
from backend.errors import StageflowError
from backend.people.rights import Right
from backend.settings import SignIn, load_settings

HERE = Path(__file__).parent
SIDEBAR = 240  # pixels

Entry = tuple[Page, str, str]
SECTIONS: dict[str, tuple[Entry, ...]] = {
    "": ((Page.START, "Start", "flag"), (Page.HELP, "Help", "help")),
    "Prepare": (
        (Page.MODELS, "Models", "deployed_code"),
        (Page.PROFILE, "Profile", "bar_chart"),
        (Page.PLAN, "Plan", "account_tree"),
        (Page.SCHEDULES, "Compare schedules", "view_timeline"),
        (Page.WHAT_IF, "What if", "query_stats"),
    ),
    "Runs": (
        (Page.RUNS, "Runs", "history"),
        (Page.RUN, "Run", "monitoring"),
        (Page.SWEEPS, "Sweeps", "grid_view"),
        (Page.COMPARE, "Compare", "compare"),
        (Page.LAUNCH, "Launch", "play_arrow"),
        (Page.NODES, "Nodes", "dns"),
        (Page.NOTIFICATIONS, "Notifications", "notifications"),
    ),
}


PROJECTS = (Page.PROJECTS, "Projects", "folder_open")
TEAM = (  # where people sign in; the last for those who decide about people
    (Page.ACCOUNT, "Account", "account_circle"),
    PROJECTS,
    (Page.PEOPLE, "People", "group"),
)


def unknown() -> list[st.Page]:
    """The page that says so where the address names none of the others."""
    name = named_page()
    known = {page.path for pages in sections().values() for page, _, _ in pages}
    if not name or name in known:
        return []
    return [st.Page(unknown_page, title="Not found", url_path=name, visibility="hidden")]


def sections() -> dict[str, tuple[Entry, ...]]:
    """The pages that there are for this visitor."""
    try:
        visitor = services.visitor()
        if load_settings().sign_in is not SignIn.OFF:
            manages = visitor.actor.may(Right.MANAGE)
            return SECTIONS | {"Team": TEAM if manages else TEAM[:2]}
        return SECTIONS | ({"Team": (PROJECTS,)} if len(visitor.projects.list()) > 1 else {})
    except StageflowError:  # the page itself will say what is the matter
        return SECTIONS


def navigation() -> st.Page:
    """The pages, grouped by what a person is doing, in the order of the work."""
    home = st.Page(Page.HOME.value, title="Stageflow", default=True, visibility="hidden")
    return st.navigation(
        {
            section: [
                *([] if section else [home, *unknown()]),
                *(
                    st.Page(page.value, title=title, icon=f":material/{icon}:", url_path=page.path)
                    for page, title, icon in pages
                ),
            ]
            for section, pages in sections().items()
        },
        expanded=True,  # also where the chooser of projects stands below
    )


def main() -> None:
    """Draw the page that the URL names, once the database has been found in order."""
    st.set_page_config(
        page_title="Stageflow",
        page_icon=str(HERE / "icon.svg"),
        layout="wide",
        initial_sidebar_state=SIDEBAR,
    )
    with page_slot():
        draw()


def draw() -> None:
    """The frame, and the page in it."""
    st.logo(str(HERE / "logo.svg"), icon_image=str(HERE / "icon.svg"), size="large")
    st.html(HERE / "style.css")
    load_ahead()
    page = navigation()
    with boundary():
        project_chooser()
        search_everything()
        signed_in()
        state.show_notice()
        page.run()


main()

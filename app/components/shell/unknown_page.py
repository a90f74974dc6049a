"""Where an address leads that names no page, or none for this visitor."""

from app.components.shell.layout import empty_state, page_header
from app.session.links import named_page
from app.session.state import Page

WHY = {
    Page.PEOPLE.path: "The page People is for administrators: ask one of them.",
    Page.ACCOUNT.path: "Nobody signs in here, so nobody has an account.",
    Page.PROJECTS.path: "There is only one project, so there is nothing to choose.",
}


def unknown_page() -> None:
    """Says that there is no such page, or who may see it."""
    name = named_page()
    page_header("Not found")
    if why := WHY.get(name):
        empty_state("This page is not available", why, Page.START, "Go to Start")
    else:
        advice = "The address may be misspelt. All pages are listed on the left."
        empty_state(f"No page {name!r}", advice, Page.START, "Go to Start")

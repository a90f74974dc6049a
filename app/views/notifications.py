"""Notifications: where one is told of runs, and of what."""

from app import services
from app.components.people.place_list import place_form, place_list
from app.components.shell.layout import card, page_header


def page() -> None:
    """Nothing here can be seen or changed by anybody else."""
    page_header("Notifications", "Where notifications about your runs go, and for which events.")
    notices = services.backend().notices
    with card("Places", "yours alone"):
        place_list(notices)
    with card("Add a place"):
        place_form(notices)


page()

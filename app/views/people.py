"""People: who belongs to the team, with which role, and who did what."""

from app import services
from app.components.people.audit_list import audit_list
from app.components.people.people_list import invite_form, people_list
from app.components.shell.layout import card, page_header
from app.formats import count


def page() -> None:
    """For those who decide about people; the others are told so."""
    backend = services.backend()
    page_header(
        "People",
        "A guest sees only their own projects. A viewer reads, an editor changes, an admin also "
        "manages people.",
    )
    backend.team.check()
    with card("Invite"):
        invite_form(backend.team, backend.settings.address)
    people = backend.team.list()
    with card("Team", count(len(people), "person", "people")):
        people_list(backend.team, people, backend.settings.address)
    with card("Audit log", "who did what, and what was refused; newest first"):
        audit_list(backend.audit)


page()

"""Notifications: places are added and removed; a run is watched."""

from app.session.state import Page
from backend.bootstrap import Backend
from backend.runs.history.notices import PlaceKind, RunEvent
from tests.app import seed
from tests.app.conftest import Open
from tests.app.pages import button, text_of


def test_a_place_is_added_and_removed(backend: Backend, open_page: Open) -> None:
    page = open_page(Page.NOTIFICATIONS)
    assert "Mail is not set up" in text_of(page)
    for address in ("nowhere", "https://hooks.slack.com/services/secret"):
        page.text_input[0].set_value(address)
        page.pills[0].set_value([RunEvent.FAILED])
        button(page, "Add").click().run()
        assert not page.exception
        assert ("not the address of a chat" in text_of(page)) == (address == "nowhere")
    (kept,) = backend.notices.list()
    assert (kept.kind, kept.events) == (PlaceKind.CHAT, (RunEvent.FAILED,))
    assert "secret" not in text_of(page)
    button(page, "Remove").click().run()
    assert not backend.notices.list()
    assert "You get no notifications yet" in text_of(page)


def test_a_live_run_is_watched(backend: Backend, seeded: seed.Seeded, open_page: Open) -> None:
    backend.notices.add(PlaceKind.CHAT, "https://example.org/x")
    run = backend.runs.get(seeded.running)
    told = backend.notices.is_told(run)
    page = open_page(Page.RUN, id=seeded.running)
    button(page, "Notified" if told else "Notify me").click().run()
    assert not page.exception
    assert backend.notices.is_told(run) is not told

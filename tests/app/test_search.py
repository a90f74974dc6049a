"""Ctrl+K: what is found, by name and by number."""

from app.queries.everything import MOST, search
from app.session.state import Page
from backend.bootstrap import Backend
from backend.cluster.presets import local
from tests.app import seed
from tests.app.conftest import Open
from tests.app.pages import button, text_of


def test_everything_is_found_by_name_or_number(backend: Backend, seeded: seed.Seeded) -> None:
    backend.clusters.save("the broken room", local(2))
    found = {(hit.kind, hit.label): hit for hit in search(backend, " BROKEN ")}
    assert [kind for kind, _ in found] == ["run", "cluster"]
    run = found["run", f"{seeded.failed} · broken loss · failed"]
    assert (run.page, run.params) == (Page.RUN, (("id", seeded.failed),))
    assert {hit.kind for hit in search(backend, "vgg")} == {"run", "profile", "model"}
    assert [hit.kind for hit in search(backend, "node")][-1] == "node"
    assert ("page", "Nodes") in {(hit.kind, hit.label) for hit in search(backend, "node")}
    numbered = [hit for hit in search(backend, str(seeded.plan)) if hit.kind == "plan"]
    assert [hit.params for hit in numbered] == [(("plan", seeded.plan),)]
    for number in range(MOST + 1):
        backend.clusters.save(f"hall {number}", local(2))
    assert len(search(backend, "hall")) == MOST
    assert search(backend, " ") == []


def test_the_search_opens_on_every_page(seeded: seed.Seeded, open_page: Open) -> None:
    page = open_page(Page.NODES)
    page.session_state["search-text"] = "no such thing"
    button(page, "Search").click().run()
    assert not page.exception
    assert "`Ctrl+K` search" in text_of(page)
    assert "Nothing has this" in text_of(page)

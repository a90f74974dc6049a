"""What if: empty, its curves in the background, cancelled and begun again, a broken cluster."""

import time

from streamlit.testing.v1 import AppTest

from app.formats import NOTHING
from app.session.state import Page
from backend.bootstrap import Backend
from tests.app import seed
from tests.app.conftest import Open
from tests.app.pages import no_searcher, searched, text_of


def finished(page: AppTest) -> AppTest:
    """The page once its sweep has ended."""
    deadline = time.monotonic() + 240
    while page.get("progress"):
        assert time.monotonic() < deadline
        searched(page, 10.0)
        page.run()
    return page


def test_without_profiles_the_page_leads_to_the_models(backend: Backend, open_page: Open) -> None:
    page = open_page(Page.WHAT_IF)
    assert "No profile yet" in text_of(page)
    assert not page.exception


def test_curves_and_where_the_best_plan_changes(seeded: seed.Seeded, open_page: Open) -> None:
    page = finished(open_page(Page.WHAT_IF, schedule="1f1b-flush", batch=4))
    text = text_of(page)
    for title in ("Devices", "Device type", "Link bandwidth", "Microbatches per update"):
        assert f"**{title}**" in text
    assert "best plan" in text.lower() or "up to" in text
    table = page.dataframe[0].value
    assert (table["to"].str.endswith("(as it is)")).sum() == 4
    assert not page.exception


def test_cost_follows_the_price(seeded: seed.Seeded, open_page: Open) -> None:
    page = finished(open_page(Page.WHAT_IF, planner="pipedream"))
    before = page.dataframe[0].value["per million samples"][0]
    next(b for b in page.number_input if b.label.startswith("Price")).set_value(4.0).run()
    after = finished(page).dataframe[0].value["per million samples"][0]
    assert before != after
    apart = open_page(Page.WHAT_IF, planner="pipedream", prices="cpu 8")
    assert finished(apart).dataframe[0].value["per million samples"][0] != after
    page.segmented_control[0].set_value("Cost").run()
    assert "per million samples" in text_of(finished(page))


def test_energy_is_drawn_where_watts_are_known(seeded: seed.Seeded, open_page: Open) -> None:
    page = finished(open_page(Page.WHAT_IF, planner="pipedream", show="Energy"))
    assert "What these devices draw is not known" in text_of(page)
    assert set(page.dataframe[0].value["per sample"]) == {NOTHING}
    page = finished(
        open_page(Page.WHAT_IF, planner="pipedream", show="Energy", cluster="dgx-h100:1")
    )
    assert "What these devices draw is not known" not in text_of(page)
    told = page.dataframe[0].value
    assert told["per sample"][told["best plan"] != NOTHING].str.endswith("J").all()
    assert not page.exception


def test_the_plan_pages_question_is_carried_over(seeded: seed.Seeded, open_page: Open) -> None:
    page = open_page(Page.WHAT_IF, planner="straight", memory=2**30, schedule="gpipe")
    assert "1 option set: memory 1.00 GiB" in text_of(page).replace("\u00a0", " ")
    table = finished(page).dataframe[0].value
    assert all("gpipe" in plan for plan in table["best plan"] if "·" in plan)


def test_prices_that_cannot_be_read_are_said(seeded: seed.Seeded, open_page: Open) -> None:
    page = open_page(Page.WHAT_IF, prices="H100")
    assert "cannot be read" in page.error[0].value
    assert not page.exception


def test_a_cancelled_sweep_can_be_begun_again(seeded: seed.Seeded, open_page: Open) -> None:
    with no_searcher():  # the sweep waits for its turn: there is time to cancel it
        page = open_page(Page.WHAT_IF, planner="pipedream", schedule="gpipe", batch=3)
        next(b for b in page.button if b.label == "Cancel").click()
        page.run()
    deadline = time.monotonic() + 240
    while not [b for b in page.button if b.label == "Start again"]:
        assert time.monotonic() < deadline
        page.run()
    assert "Cancelled after 0 of" in text_of(page)
    next(b for b in page.button if b.label == "Start again").click()
    page = finished(page.run())
    assert page.dataframe


def test_a_broken_cluster_is_said(seeded: seed.Seeded, open_page: Open) -> None:
    page = open_page(Page.WHAT_IF, cluster="levels: [")
    assert page.error
    assert not page.exception

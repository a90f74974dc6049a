"""What two people of a team do with plans, runs and sweeps, in a real browser, on one home."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from tests.app import seed
from tests.e2e import team_home
from tests.e2e.conftest import keep_screenshot, settled, window
from tests.e2e.team_home import Team
from tests.e2e.tour import COOKIE, dashboard, stands

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.timeout(1500)]
MOST = 2**20
"""Bytes of an exported timeline."""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Team]]:
    home = tmp_path_factory.mktemp("home")
    with seed.settings(home, STAGEFLOW_LEASE="3600"):
        backend = seed.fresh()
        team = team_home.fill(backend)
        backend.close()
    with dashboard(home, STAGEFLOW_SIGN_IN="accounts", STAGEFLOW_LEASE="3600") as url:
        yield url, team


@pytest.fixture(scope="module")
def ada(browser: Browser, place: tuple[str, Team]) -> Iterator[Page]:
    yield from visitor(browser, place[0], place[1].ada)


@pytest.fixture(scope="module")
def ed(browser: Browser, place: tuple[str, Team]) -> Iterator[Page]:
    yield from visitor(browser, place[0], place[1].ed)


def visitor(browser: Browser, url: str, secret: str) -> Iterator[Page]:
    context = window(browser, base_url=url, accept_downloads=True)
    context.add_cookies([{"name": COOKIE, "value": secret, "url": url}])
    page = context.new_page()
    page.set_default_timeout(240_000)
    yield page
    context.close()


def opened(page: Page, path: str) -> Page:
    page.goto(path)
    stands(page)
    return page


def card(page: Page, title: str) -> Locator:
    """The card of this title."""
    named = page.get_by_text(title, exact=True)
    return page.get_by_test_id("stVerticalBlock").filter(has=named).last


def named(page: Page, noun: str, name: str) -> None:
    """Gives what is open a name, by its Edit menu."""
    settled(page).get_by_role("button", name="Edit", exact=True).first.click()
    form = page.get_by_test_id("stForm").filter(has_text="Tags")
    form.get_by_label("Name").fill(name)
    form.get_by_label("Tags").fill("paper, baseline")
    form.get_by_label("Note").fill(f"the {noun} of Monday")
    form.get_by_role("button", name="Save changes").click()


def test_plans_and_profiles_have_names_of_their_own(ada: Page, place: tuple[str, Team]) -> None:
    opened(ada, "/plan?plan=1")
    named(ada, "plan", "Monday")
    expect(ada.get_by_text("The plan is changed")).to_be_visible()
    expect(ada.get_by_text("the plan of Monday").first).to_be_visible()
    opened(ada, "/plan?plan=2")
    named(ada, "plan", "MONDAY")
    expect(ada.get_by_text("the project has a plan 'MONDAY'")).to_be_visible()
    expect(ada.get_by_text("Traceback")).to_have_count(0)
    keep_screenshot(ada, "team-name-taken")
    opened(ada, "/profile?id=1")
    named(ada, "profile", "digits on one core")
    expect(ada.get_by_text("The profile is changed")).to_be_visible()
    opened(ada, "/plan?plan=1")
    saved = card(ada, "Saved plans")
    for shown in ("Monday", "vgg_digits", "digits on one core", "baseline"):
        expect(saved.get_by_text(shown).first).to_be_visible()


def test_a_cluster_is_kept_for_everybody_and_presets_name_their_source(ada: Page, ed: Page) -> None:
    opened(ada, "/plan?profile=1&cluster=dgx-h100:2")
    expect(ada.get_by_text(re.compile("Source: NVIDIA"))).to_be_visible()
    written = "levels: [{count: 4, bandwidth: 2.0e10}]"
    opened(ada, f"/plan?profile=1&cluster={written}")
    settled(ada).get_by_role("button", name="Edit cluster").click()
    settled(ada).get_by_role("tab", name="Save").click()
    ada.get_by_placeholder("such as: the new room").fill("Our room")
    settled(ada).get_by_role("button", name="Save this cluster").click()
    expect(ada.get_by_text("The cluster is saved as Our room")).to_be_visible()
    opened(ed, "/nodes")
    expect(card(ed, "Clusters").get_by_text("Our room")).to_be_visible()


def test_two_plans_and_two_runs_stand_side_by_side(ada: Page, place: tuple[str, Team]) -> None:
    opened(ada, "/plan?plan=1")
    for plan in (1, 3):
        settled(ada).locator(f".st-key-tick-{plan} label").click()
    settled(ada).get_by_role("button", name="Compare", exact=True).click()
    ada.wait_for_url(re.compile(r"/compare\?.*plans=1%2C3"))
    for title in ("What differs", "Layers in another stage", "Stages that differ", "Timelines"):
        expect(ada.get_by_text(title, exact=True).first).to_be_visible()
    expect(ada.get_by_role("application")).to_have_count(2)
    opened(ada, f"/run?id={place[1].again}")
    expect(ada.get_by_text("Beside the last run of the same plan")).to_be_visible()
    settled(ada).get_by_test_id("stMain").get_by_role("link", name="Compare").click()
    ada.wait_for_url(re.compile(r"/compare\?.*runs="))
    stands(ada)
    expect(ada.get_by_role("application")).to_have_count(2)
    expect(ada.get_by_text("vgg_digits · run", exact=False).first).to_be_visible()


def test_a_live_run_shows_its_use_its_ranks_and_their_stacks(
    ed: Page, place: tuple[str, Team]
) -> None:
    opened(ed, f"/run?id={place[1].live}")
    use = card(ed, "Use over time")
    for measure in ("Compute", "Memory", "Network"):
        expect(use.get_by_text(measure, exact=True)).to_be_visible()
    settled(ed).get_by_role("radio", name="Rank 1").click()
    expect(ed).to_have_url(re.compile("output=Rank"))
    expect(ed.get_by_text("update 47").first).to_be_visible()
    expect(ed.get_by_text("listening to rank 1")).to_have_count(0)
    settled(ed).get_by_role("button", name="Show stacks").click()
    expect(ed.get_by_text("The ranks were asked for their stacks")).to_be_visible()
    opened(ed, "/nodes")
    expect(card(ed, "Use over time").get_by_text("Compute", exact=True)).to_be_visible()


def test_a_sweep_is_followed_and_everything_is_found(ed: Page, place: tuple[str, Team]) -> None:
    opened(ed, f"/sweeps?id={place[1].sweep.id}")
    for shown in ("4 of 6", "Time left", "Runs end once one has reached the target."):
        expect(ed.get_by_text(shown).first).to_be_visible()
    expect(ed.locator(".js-plotly-plot .parcoords").first).to_be_attached()
    expect(ed.get_by_role("link", name=re.compile("The best so far"))).to_be_visible()
    ed.keyboard.press("Control+k")
    dialog = ed.get_by_role("dialog")
    expect(dialog.get_by_text("On a timeline")).to_be_visible()
    dialog.get_by_role("textbox").fill("rates and")
    ed.keyboard.press("Enter")
    dialog.get_by_role("link", name=re.compile("sweep.*rates and schedules")).click()
    ed.wait_for_url(re.compile("/sweeps"))


def test_a_view_is_kept_and_opened_by_another(ada: Page, ed: Page) -> None:
    opened(ed, "/runs?state=failed")
    expect(ed.get_by_text("broken loss")).to_be_visible()
    settled(ed).get_by_role("button", name="Views").click()
    ed.get_by_label("Save this view as").fill("What failed")
    ed.get_by_text("For everybody in the project").click()
    settled(ed).get_by_role("button", name="Save", exact=True).click()
    expect(ed.get_by_text("The view is saved as What failed")).to_be_visible()
    opened(ada, "/runs")
    settled(ada).get_by_role("button", name="Views").click()
    settled(ada).get_by_role("button", name="What failed", exact=True).click()
    ada.wait_for_url(re.compile("state=failed"))
    expect(ada.get_by_text("not needed")).to_have_count(0)


def test_one_is_told_where_one_chose_and_people_comment(
    ada: Page, ed: Page, place: tuple[str, Team]
) -> None:
    opened(ed, "/notifications")
    ed.get_by_label("Address").fill("https://chat.example.org/hooks/secret")
    settled(ed).get_by_role("button", name="Add", exact=True).click()
    expect(ed.get_by_text("Notifications go there from now on")).to_be_visible()
    expect(card(ed, "Places").get_by_text("chat.example.org")).to_be_visible()
    expect(ed.get_by_text("hooks/secret")).to_have_count(0)
    opened(ed, f"/run?id={place[1].seeded.running}")
    settled(ed).get_by_role("button", name="Notify me").click()
    expect(ed.get_by_role("button", name="Notified")).to_be_visible()
    settled(ed).get_by_label("Comment").first.fill("The rate is too *high*.")
    settled(ed).get_by_role("button", name="Comment", exact=True).click()
    expect(ed.get_by_text("The comment is added")).to_be_visible()
    opened(ada, f"/run?id={place[1].seeded.running}")
    expect(card(ada, "Comments").get_by_text("The rate is too *high*.")).to_be_visible()


def test_hundreds_of_layers_and_equal_replicas_stay_legible(
    ada: Page, place: tuple[str, Team], tmp_path: Path
) -> None:
    opened(ada, f"/profile?id={place[1].big}&detail=Layers")
    chart = ada.locator(".js-plotly-plot").first
    bar = chart.locator(".modebar-group").first
    ada.mouse.move(0, 0)
    expect(bar).to_have_css("opacity", "0")
    chart.hover()
    expect(bar).to_have_css("opacity", "1")
    ada.get_by_role("slider").first.press("ArrowRight")
    expect(ada.get_by_label("The whole network, with the part").first).to_be_attached()
    opened(ada, f"/plan?plan={place[1].folded}")
    expect(ada.get_by_role("button", name="A row for every replica")).to_be_visible()
    opened(ada, f"/run?id={place[1].seeded.succeeded}")
    settled(ada).get_by_role("button", name="Export").click()
    with ada.expect_download() as given:
        ada.get_by_role("button", name="Timeline, as a page").click()
    exported = tmp_path / "timeline.html"
    given.value.save_as(exported)
    assert exported.stat().st_size < MOST
    ada.goto(exported.as_uri())
    expect(ada.get_by_role("application")).to_be_visible()

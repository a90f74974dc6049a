"""What pages say is so: reasons, links to what is not there, names, rights, shared cores."""

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from playwright.sync_api import Browser, Page, expect

from backend.people.rights import Role
from backend.runs.run import RunSummary
from backend.runs.states import RunState
from tests.app import seed
from tests.app.test_resume import keep, stopped
from tests.app.test_run import busy_run
from tests.e2e.conftest import settled, window
from tests.e2e.emulated_case import GRAPH, fill_import
from tests.e2e.tour import COOKIE, PASSWORD, PATIENCE, dashboard, stands

FOUR_BY_FOUR = "cluster=cluster-a:4"
published = pytest.mark.skipif(not GRAPH.is_file(), reason="no published profiles beside the repo")
pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.timeout(1500)]


@dataclass(frozen=True, slots=True)
class Home:
    """Where it is, and what of `tests/app/seed.py` is in it; `viewer`: a browser's secret."""

    url: str
    team: str
    seeded: seed.Seeded
    stopped: int
    finished: int
    busy: int
    viewer: str


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    """One home behind two servers: one without a sign-in, one with accounts."""
    folder = tmp_path_factory.mktemp("home")
    with seed.settings(folder, STAGEFLOW_LEASE="3600"):
        backend = seed.fresh()
        found = seed.everything(backend)
        plan = backend.plans.get(found.plan)
        interrupted, busy = stopped(backend, found), busy_run(backend, found)
        attempt = seed.claim(backend, run := seed.submit(backend, found.definition, plan, "done"))
        seed.train_epoch(backend, attempt, plan, 0)
        keep(attempt)
        attempt.finish(RunState.SUCCEEDED, RunSummary())
        _, link = backend.team.add("vic", Role.VIEWER)
        viewer = backend.accounts.accept(link, "", PASSWORD)
        backend.close()
    with (
        dashboard(folder, STAGEFLOW_LEASE="3600") as url,
        dashboard(folder, STAGEFLOW_LEASE="3600", STAGEFLOW_SIGN_IN="accounts") as team,
    ):
        yield Home(url, team, found, interrupted, run.id, busy, viewer)


@pytest.fixture
def viewer(browser: Browser, home: Home) -> Iterator[Page]:
    """vic, who may only read."""
    context = window(browser)
    context.add_cookies([{"name": COOKIE, "value": home.viewer, "url": home.team}])
    page = context.new_page()
    page.set_default_timeout(240_000)
    yield page
    context.close()


def show(page: Page, address: str) -> Page:
    page.goto(address)
    stands(settled(page))
    return page


def why(page: Page, address: str, last: str = "") -> str:
    """The words of "Why this one", once every answer is there, and the words that come `last`."""
    page.goto(address)
    expect(page.get_by_text("Why this one")).to_be_visible(timeout=PATIENCE)
    stands(page)  # its last lines are searched for below those that are there already
    expect(page.get_by_test_id("stProgress")).to_have_count(0, timeout=PATIENCE)
    stands(page)
    expect(page.locator(".st-key-quiet-why")).to_contain_text(last, timeout=PATIENCE)
    return page.locator(".st-key-quiet-why").inner_text().replace("\u00a0", " ")


@published
def test_an_imported_profile_is_planned_with_its_reasons(page: Page, home: Home) -> None:
    show(page, f"{home.url}/start")
    fill_import(page)
    page.get_by_test_id("stPopoverBody").get_by_role("button", name="Import").click()
    page.wait_for_url("**/plan?profile=*")
    number = re.findall(r"profile=(\d+)", page.url)[0]

    here = f"{home.url}/plan?profile={number}&{FOUR_BY_FOUR}"
    said = why(page, here)
    assert re.search(r"Stage 0 is the bottleneck: .* shared by 15 replicas .* per microbatch", said)
    assert "after 15 microbatches, 1,920 samples" in said
    assert re.search(r"at most .* faster is possible", said)
    idle = why(
        page,
        f"{here}&planner=pipedream&schedule=pipedream&memory=18e9",
        "A faster plan gives all 16 devices work",
    )
    assert "3 of 16 devices have no work." in idle
    assert "A faster plan gives all 16 devices work: 15-1" in idle
    assert "Memory limits this plan. With 29.8 GiB per device (sold as 32 GB): 15-1" in idle
    page.get_by_role("link", name="Show the plan on all devices").click()
    expect(page.locator(".st-key-page-header")).to_contain_text("15-1", timeout=PATIENCE)

    show(page, f"{home.url}/schedules?profile={number}&{FOUR_BY_FOUR}&memory=4e9")
    expect(page.get_by_text("Side by side")).to_be_visible(timeout=PATIENCE)
    expect(page.get_by_role("button", name="#5 ")).to_be_visible(timeout=PATIENCE)
    expect(page.get_by_text("too much")).to_have_count(0)

    show(page, f"{home.url}/profile?id={number}")
    expect(page.get_by_role("button", name="node2, Conv2d")).to_be_visible()
    other = page.get_by_role("combobox", name="Compare with")
    expect(other).to_have_value("none of the same model; choose another")
    expect(page).to_have_title(f"vgg16 · profile {number} · Stageflow")


def test_a_count_that_is_cut_down_is_said(page: Page, home: Home) -> None:
    why(page, f"{home.url}/plan?profile=1&cluster=local:0")
    expect(page.get_by_text("The link asks for 0 devices; a page plans for 1 to")).to_be_visible()


def test_ranks_that_share_cores_are_said(page: Page, home: Home) -> None:
    more = 2 * (os.cpu_count() or 1)
    said = why(page, f"{home.url}/plan?profile=1&cluster=local:{more}")
    assert "spread by speed over the" in said
    assert "of each host" in said


def test_schedules_begin_with_plans_that_fit(page: Page, home: Home) -> None:
    show(page, f"{home.url}/schedules?profile=1&cluster=local:4&memory=6e6")
    expect(page.get_by_text("Side by side")).to_be_visible(timeout=PATIENCE)
    expect(page.get_by_role("button", name="#2 ")).to_be_visible()
    expect(page.get_by_text("too much")).to_have_count(0)


def test_a_finished_run_is_trained_on_and_an_interrupted_one_resumed(
    page: Page, home: Home
) -> None:
    show(page, f"{home.url}/run?id={home.finished}")
    button = page.get_by_role("button", name="Train on")
    expect(button).to_be_visible()
    expect(page.get_by_role("button", name="Resume")).to_have_count(0)
    button.click()
    expect(page.get_by_label("Further epochs").first).to_be_visible()
    show(page, f"{home.url}/run?id={home.stopped}")
    expect(page.get_by_role("button", name="Resume").first).to_be_visible()
    expect(page.get_by_role("button", name="Train on")).to_have_count(0)


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("run?id=999", "No run 999"),
        ("plan?plan=999", "No plan 999"),
        ("plan?profile=x", "No profile 'x'"),
        ("profile?id=999", "No profile 999"),
        ("models?id=999", "No model 999"),
        ("nothing", "No page 'nothing'"),
        ("run/1", "No page 'run-1'"),
        ("people", "for administrators"),
    ],
)
def test_a_link_to_what_is_not_there_says_so(page: Page, home: Home, path: str, said: str) -> None:
    show(page, f"{home.url}/{path}")
    expect(page.get_by_text(said)).to_be_visible()


def test_titles_name_the_thing_and_rows_are_links(page: Page, home: Home) -> None:
    show(page, f"{home.url}/run?id={home.seeded.running}")
    title = re.compile(r"^vgg_digits again · run \d+ · \d+\s% · Stageflow$")
    expect(page).to_have_title(title)
    show(page, f"{home.url}/runs")
    row = page.locator(f"a[href*='run?id={home.finished}']").first
    with page.context.expect_page() as opened:
        row.click(modifiers=["Control"])
    expect(settled(opened.value).get_by_role("heading", name="done")).to_be_visible()
    assert "/runs" in page.url


def test_shared_cores_are_said_and_one_click_profiles_again(page: Page, home: Home) -> None:
    show(page, f"{home.url}/run?id={home.busy}")
    expect(page.get_by_text("Cores were shared: 50")).to_be_visible()
    page.get_by_role("button", name="Profile again").click()
    page.wait_for_url(lambda url: f"id={home.busy}" not in url)
    expect(settled(page).get_by_text("profile vgg_digits").first).to_be_visible()


def test_a_viewer_sees_why_buttons_are_closed_and_signs_out(viewer: Page, home: Home) -> None:
    show(viewer, f"{home.team}/start")
    closed = viewer.get_by_role("button", name="Import a profile")
    expect(closed).to_be_disabled()
    closed.hover(force=True)
    expect(viewer.get_by_text("Your role gives no right to edit here.")).to_be_visible()
    show(viewer, f"{home.team}/models")
    expect(viewer.get_by_role("button", name="Add").first).to_be_disabled()
    sidebar = viewer.locator(".st-key-signed-in")
    expect(sidebar).to_contain_text("vic")
    sidebar.get_by_role("button", name="Sign out").click()
    expect(viewer.get_by_role("button", name="Sign in")).to_be_visible()


def test_terms_explain_themselves_on_hover_and_on_a_page(page: Page, home: Home) -> None:
    why(page, f"{home.url}/plan?profile=1&cluster=local:2")
    page.get_by_role("button", name="Help for Bubble").hover()
    expect(page.get_by_text("spent waiting instead of computing")).to_be_visible()
    show(page, f"{home.url}/help")
    for term in ("15-1", "1F1B", "2BW", "Bubble", "Staleness", "Imbalance"):
        expect(page.get_by_text(term).first).to_be_visible()

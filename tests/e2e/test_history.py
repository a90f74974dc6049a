"""A visitor finds runs again, compares three, shares the view, and runs one again."""

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.app import seed
from tests.e2e import tour
from tests.e2e.conftest import keep_screenshot, settled, window

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def dashboard(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A dashboard, without an agent, on a home with six trainings that have ended."""
    home = tmp_path_factory.mktemp("history")
    with seed.settings(home):
        _fill()
    with tour.dashboard(home) as url:
        yield url


def _fill() -> None:
    backend = seed.fresh()
    found = seed.everything(backend)
    plan = backend.plans.get(found.plan)
    for _ in range(2):
        seed.succeeded(backend, found.definition, plan)
    backend.close()


def tick(page: Page, run_id: int) -> None:
    settled(page).locator(f".st-key-pick-{run_id} label").click()
    expect(settled(page).locator(f".st-key-pick-{run_id} input")).to_be_checked()


def test_three_runs_are_compared_and_the_view_is_shared(
    dashboard: str, page: Page, browser: Browser
) -> None:
    page.goto(f"{dashboard}/runs")
    settled(page).get_by_role("button", name="Accuracy").click()
    page.wait_for_url(re.compile("sort=accuracy"))
    for number, run_id in enumerate((2, 7, 8), start=1):
        tick(page, run_id)
        expect(page.get_by_text(f"{number} selected").first).to_be_visible()
    settled(page).get_by_role("button", name="Compare").click()
    page.wait_for_url(re.compile(r"/compare\?.*runs=2%2C7%2C8"))
    expect(page.get_by_text("Summary").first).to_be_visible()
    settled(page).get_by_role("radio", name="wall clock").click()
    page.wait_for_url(re.compile("axis=wall"))
    expect(page.locator("[data-testid=stVegaLiteChart]").first).to_be_visible()
    keep_screenshot(page, "compare")
    context = window(browser)
    other = context.new_page()
    other.goto(page.url)
    expect(other.get_by_text("Summary")).to_be_visible()
    expect(other.get_by_role("radio", name="wall clock")).to_be_checked()
    expect(other.get_by_text("vgg_digits · run 2").first).to_be_visible()
    context.close()


def test_a_filtered_list_is_shared(dashboard: str, page: Page) -> None:
    page.goto(f"{dashboard}/runs")
    expect(settled(page).get_by_text("broken loss")).to_be_visible()
    settled(page).get_by_label("Search").fill("again")
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile("text=again"))
    expect(page.get_by_text("broken loss")).to_have_count(0)
    page.reload()
    expect(settled(page).get_by_text("vgg_digits again")).to_be_visible()
    expect(page.get_by_text("broken loss")).to_have_count(0)
    keep_screenshot(page, "runs-filtered")


def test_a_failed_run_is_cloned_with_another_rate(dashboard: str, page: Page) -> None:
    page.goto(f"{dashboard}/run?id=3")
    settled(page).get_by_role("button", name="Clone").click()
    page.wait_for_url(re.compile(r"/launch\?.*run=3"))
    rate = settled(page).get_by_role("spinbutton", name="Learning rate")
    rate.fill("0.002")
    rate.press("Enter")
    page.wait_for_url(re.compile(r"lr=0\.002"))
    settled(page).get_by_role("button", name="Start run").click()
    page.wait_for_url(re.compile(r"/run\?id="))
    expect(settled(page).get_by_text("from run 3")).to_be_visible()
    keep_screenshot(page, "cloned")


def test_the_handbook_of_the_api_is_there(dashboard: str, page: Page) -> None:
    page.goto(f"{dashboard}/api")
    page.get_by_text("/api/v1/runs/{id}/retry").click()
    expect(page.locator("#retry_run pre")).to_be_visible()
    keep_screenshot(page, "api")

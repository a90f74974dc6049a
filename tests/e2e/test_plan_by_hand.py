"""A plan changed by hand in a real browser, and its link opened by somebody else."""

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from tests.app import seed
from tests.e2e.conftest import keep_screenshot, settled, window
from tests.e2e.tour import dashboard

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.timeout(1500)]


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The pages alone, on a home with a profile: no agent is needed to plan."""
    home = tmp_path_factory.mktemp("home")
    with seed.settings(home):
        backend = seed.fresh()
        definition = backend.definitions.add_zoo("vgg_digits")
        backend.profiles.add(seed.a_profile(), definition.id)
        backend.close()
    with dashboard(home) as address:
        yield address


@pytest.fixture
def planned(page: Page, url: str) -> Page:
    """The plan page, on a server of four devices: those of a machine may share its cores."""
    page.goto(f"{url}/plan?profile=1&cluster=cluster-a:1&planner=even-split")
    expect(handles(page)).to_have_count(3)
    return page


def handles(page: Page) -> Locator:
    return page.get_by_role("slider", name=re.compile("Cut behind stage"))


def throughput(page: Page) -> Locator:
    return page.get_by_test_id("stMetricValue").first


def cut_of(page: Page) -> str:
    found = re.search(r"cut=([^&]*)", page.url)
    return found[1] if found else ""


def test_cuts_are_dragged_keyed_and_stepped_and_the_link_shows_the_same(
    planned: Page, browser: Browser
) -> None:
    page = planned
    before = throughput(page).inner_text()
    box = handles(page).nth(0).bounding_box()
    assert box
    page.mouse.move(box["x"] + 7, box["y"] + 60)
    page.mouse.down()
    page.mouse.move(box["x"] + 130, box["y"] + 60, steps=6)
    page.mouse.up()
    expect(page).to_have_url(re.compile("cut="))
    expect(throughput(page)).not_to_have_text(before)
    dragged = cut_of(page)
    handles(settled(page)).nth(0).focus()  # what is drawn anew while it has the focus loses the key
    page.keyboard.press("ArrowLeft")
    page.wait_for_url(lambda url: "cut=" in url and dragged not in url)
    settled(page).get_by_role("button", name="Join this stage with the next").click()
    expect(handles(page)).to_have_count(2)
    expect(settled(page).get_by_text("Edited by hand")).to_be_visible()
    keep_screenshot(page, "10-plan-by-hand")
    somebody = window(browser).new_page()
    somebody.goto(page.url)
    expect(handles(somebody)).to_have_count(2)
    expect(throughput(somebody)).to_have_text(throughput(page).inner_text())
    somebody.context.close()
    settled(page).get_by_role("button", name="Undo").click()
    expect(handles(page)).to_have_count(3)
    settled(page).get_by_role("button", name="Reset", exact=True).click()
    expect(throughput(page)).to_have_text(before)


def test_a_plan_is_kept_by_its_name(planned: Page) -> None:
    page = planned
    settled(page).get_by_role("button", name="Save plan").click()
    settled(page).get_by_label("Name", exact=True).first.fill("four equal parts")
    settled(page).get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_text("four equal parts").first).to_be_visible()


def test_timelines_of_schedules_move_together_by_keys(planned: Page, url: str) -> None:
    page = planned
    page.goto(f"{url}/schedules?cluster=local:2&pairs=straight:pipedream:1,straight:gpipe:4")
    canvases = page.get_by_role("application")
    expect(canvases).to_have_count(2)
    canvases.first.focus()
    page.keyboard.press("w")
    page.keyboard.press("w")
    expect(page).to_have_url(re.compile("window="))
    page.keyboard.press(".")
    expect(page.locator(".said").first).to_have_text(re.compile("forward|backward"))
    keep_screenshot(page, "11-compare-schedules")
    page.keyboard.press("0")
    expect(page).not_to_have_url(re.compile("window="))

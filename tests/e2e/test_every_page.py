"""Every page in every state: nothing that shuts people out, nothing wider than the window."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from axe_playwright_python.base import AXE_SCRIPT
from playwright.sync_api import Browser, Keyboard, Page, expect

from tests.app import seed
from tests.e2e.conftest import settled, window
from tests.e2e.tour import COOKIE, EMPTY, SEEDED, TEAM, Stop, a_team, dashboard, stands, visit

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.timeout(1500)]
STREAMLIT_DRAWS = "[data-testid=stSidebarNav]"
BROKEN_THERE = {  # rule -> why that is left
    "list": "sections lie between its list and the items",
    "listitem": "the same, seen from the items",
}
GRAVE = ("serious", "critical")
SCROLLS = """() => ['html', '[data-testid=stMain]']
  .map((name) => document.querySelector(name))
  .map((box) => box.scrollWidth - box.clientWidth)"""
WIDE, TOP = (f"box => Math.round(box.getBoundingClientRect().{of})" for of in ("width", "top"))
STILL = """() => document.getAnimations().every(
  (one) => one.playState !== 'running' || one.effect.getTiming().iterations === Infinity)"""
HEADINGS = """() => [...document.querySelectorAll(
    '.st-key-grid-comparison [data-testid=stCaptionContainer] p')]
  .map((head) => [head.innerText, head.scrollWidth - head.parentElement.clientWidth])
  .filter(([, over]) => over > 1)"""
ROOM_LEFT = """() => {
  const cards = document.querySelector('.st-key-panels-run');
  const right = (box) => box.getBoundingClientRect().right;
  const top = (card) => Math.round(card.getBoundingClientRect().top);
  const rows = Object.groupBy(cards.children, top);
  return Object.values(rows).map((row) => Math.round(right(cards) - Math.max(...row.map(right))));
}"""
LOOK = """async ([drawn, broken]) => {
  const resultTypes = ['violations', 'incomplete'];
  const { violations, incomplete } = await axe.run({ resultTypes, elementRef: true });
  const ours = ({ id, impact, nodes }) => ({
    id, impact, nodes: nodes
      .filter(({ element }) => !(broken.includes(id) && element?.closest(drawn)))
      .map(({ html, any }) => ({ html, any: any.map(({ data }) => ({ data })) })),
  });
  return { violations: violations.map(ours), incomplete: incomplete.map(ours) };
}"""
CUT_OFF = """() => [...document.querySelectorAll(
    '[data-testid=stMain] :is(h1, h2, h3, button p, [data-testid=stMetricValue] *, label p)')]
  .filter((box) => box.checkVisibility() && box.clientWidth
    && box.scrollWidth > box.clientWidth + 1 && getComputedStyle(box).overflowX !== 'visible')
  .map((box) => box.innerText)"""


@pytest.fixture(scope="module")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    home = tmp_path_factory.mktemp("empty")
    with seed.settings(home):
        seed.fresh().close()
    with dashboard(home) as url:
        yield url


@pytest.fixture(scope="module")
def seeded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, seed.Seeded]]:
    home = tmp_path_factory.mktemp("seeded")
    with seed.settings(home, STAGEFLOW_LEASE="3600"):
        backend = seed.fresh()
        found = seed.everything(backend)
        backend.close()
    with dashboard(home, STAGEFLOW_LEASE="3600") as url:
        yield url, found


@pytest.fixture(scope="module")
def visitor(browser: Browser) -> Iterator[Page]:
    """One visitor who sees all pages: a browser reads the scripts of ours slowly the first time."""
    context = window(browser)
    page = context.new_page()
    page.set_default_timeout(240_000)
    yield page
    context.close()


def of_width(page: Page, width: int) -> Page:
    """A window this wide, for the pages to come."""
    page.set_viewport_size({"width": width, "height": 1000})
    return page


@pytest.mark.parametrize("stop", EMPTY, ids=lambda stop: stop.name)
def test_an_empty_page_is_open_to_everybody(visitor: Page, empty: str, stop: Stop) -> None:
    visit(of_width(visitor, 1440), empty, stop)
    assert grave_faults(visitor) == []
    fits(visitor)


@pytest.mark.parametrize("stop", SEEDED, ids=lambda stop: stop.name)
def test_a_page_is_open_to_everybody(
    visitor: Page, seeded: tuple[str, seed.Seeded], stop: Stop
) -> None:
    url, found = seeded
    visit(of_width(visitor, 1440), url, stop, found)
    assert grave_faults(visitor) == []
    fits(visitor)


@pytest.mark.parametrize("width", [1060, 1200])
@pytest.mark.parametrize("name", ["run-succeeded", "plan"])
def test_titles_and_figures_have_room_between_the_widths_of_the_pictures(
    visitor: Page, seeded: tuple[str, seed.Seeded], name: str, width: int
) -> None:
    """The title is not squeezed beside its buttons, and no figure is alone in a row."""
    page = of_width(visitor, width)
    visit(page, seeded[0], next(stop for stop in SEEDED if stop.name == name), seeded[1])
    assert page.locator(".st-key-page-header > :first-child").evaluate(WIDE) >= 300
    rows = Counter(card.evaluate(TOP) for card in page.locator("[class*=st-key-figures] > *").all())
    assert rows.total() >= 5
    assert min(rows.values()) > 1


@pytest.mark.parametrize("width", [1280, 1420, 1600])
def test_the_pictures_of_a_run_leave_no_row_half_empty(
    visitor: Page, seeded: tuple[str, seed.Seeded], width: int
) -> None:
    page = of_width(visitor, width)
    visit(page, seeded[0], next(stop for stop in SEEDED if stop.name == "run-succeeded"), seeded[1])
    cards = page.locator(".st-key-panels-run > *")
    counts = range(cards.count(), 9)  # a run with codecs, sites or metrics of its own has more
    left = []
    for _ in counts:
        left.append(max(page.evaluate(ROOM_LEFT)))
        cards.last.evaluate("(card) => card.parentElement.append(card.cloneNode(true))")
    assert left == [0] * len(counts)


def test_headings_of_the_comparison_are_within_their_columns(
    visitor: Page, seeded: tuple[str, seed.Seeded]
) -> None:
    page = of_width(visitor, 1280)
    visit(page, seeded[0], next(stop for stop in SEEDED if stop.name == "compare"), seeded[1])
    assert page.locator(".st-key-grid-comparison").is_visible()
    assert page.evaluate(HEADINGS) == []


@pytest.fixture(scope="module")
def admin(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Page, str]]:
    """Somebody who has signed in and decides about people, and the address of the dashboard."""
    home = tmp_path_factory.mktemp("team")
    with seed.settings(home):
        backend = seed.fresh()
        secret = a_team(backend)
        backend.close()
    with dashboard(home, STAGEFLOW_SIGN_IN="accounts") as url:
        context = window(browser)
        context.add_cookies([{"name": COOKIE, "value": secret, "url": url}])
        page = context.new_page()
        page.set_default_timeout(240_000)
        yield page, url
        context.close()


@pytest.mark.parametrize("stop", TEAM, ids=lambda stop: stop.name)
def test_a_page_of_the_team_is_open_to_everybody(admin: tuple[Page, str], stop: Stop) -> None:
    page, url = admin
    visit(page, url, stop)
    assert grave_faults(page) == []
    fits(page)


def test_a_token_is_made_and_somebody_invited_by_keys_alone(admin: tuple[Page, str]) -> None:
    page, url = admin
    visit(page, url, TEAM[0])
    by_tab(page, "Name").type("by keys")
    page.keyboard.press("Enter")
    expect(page.get_by_text("it is not shown again")).to_be_visible()
    visit(page, url, TEAM[1])
    by_tab(page, "Name").type("Linus")
    page.keyboard.press("Enter")
    expect(page.get_by_text("Give Linus this link")).to_be_visible()


def by_tab(page: Page, label: str) -> Keyboard:
    """The keyboard, once Tab has led to the field of this name."""
    for _ in range(60):
        page.keyboard.press("Tab")
        named = page.evaluate("() => document.activeElement.getAttribute('aria-label') || ''")
        if named == label:
            return page.keyboard
    raise AssertionError(f"Tab does not lead to {label}")


def fits(page: Page) -> None:
    """Nothing to scroll sideways and no cut word, at a small desktop's width and a tablet's."""
    for width in (1280, 768):
        page.set_viewport_size({"width": width, "height": 900})
        settled(page).wait_for_function(f"({SCROLLS})().every((over) => over <= 0)")
        assert page.evaluate(CUT_OFF) == []
    page.set_viewport_size({"width": 1440, "height": 1000})


def grave_faults(page: Page) -> list[str]:
    """What axe finds serious or critical, in light and dark, but for what Streamlit draws."""
    found = []
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
        expect(page.get_by_test_id("stApp")).to_have_css("color-scheme", scheme)
        stands(page)
        page.wait_for_function(STILL)
        found += [f"{scheme}: {fault}" for fault in _ask_axe(page)]
    page.emulate_media(color_scheme="light")
    return found


def _ask_axe(page: Page) -> list[str]:
    """One look at all; what is broken where Streamlit draws is left out there alone."""
    if not page.evaluate("() => 'axe' in window"):
        page.evaluate(AXE_SCRIPT)
    answer = page.evaluate(LOOK, [STREAMLIT_DRAWS, list(BROKEN_THERE)])
    grave = [
        (fault["id"], node)
        for fault in answer["violations"]
        if fault["impact"] in GRAVE
        for node in fault["nodes"]
    ]
    unsure = [node for fault in answer["incomplete"] for node in fault["nodes"]]
    grave += [("words of the ground's own colour", node) for node in unsure if _unseen(node)]
    return [f"{name}: {node['html'][:200]}" for name, node in grave]


def _unseen(node: dict[str, Any]) -> bool:
    """Axe calls a contrast of one to one a matter for people to look at, no fault."""
    return any((check["data"] or {}).get("messageKey") == "equalRatio" for check in node["any"])

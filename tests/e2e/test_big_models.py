"""Models of hundreds of layers in a real browser: labels stand apart, cuts move by blocks."""

import re
from collections.abc import Iterator, Sequence
from itertools import combinations, pairwise

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from tests.app import seed
from tests.e2e.conftest import keep_screenshot, settled, window
from tests.e2e.tour import dashboard, stands
from tests.unit.app.models import BLOCK, MODELS

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.timeout(1500)]

WIDTHS = (768, 1440)
EDITOR = "Seconds and parameters of each layer"
KEEP_TEXTS = """() => {
  const pen = CanvasRenderingContext2D.prototype, { fillText, clearRect } = pen;
  pen.clearRect = function (...box) { this.canvas.texts = []; return clearRect.apply(this, box); };
  pen.fillText = function (text, x, y) {
    const far = this.measureText(text), turned = this.getTransform();
    const from = { left: 0, center: far.width / 2, right: far.width }[this.textAlign] || 0;
    const [up, down] = [far.actualBoundingBoxAscent, far.actualBoundingBoxDescent];
    const right = far.width - from;
    const corners = [[-from, -up], [right, -up], [right, down], [-from, down]];
    const at = ([a, b]) => turned.transformPoint(new DOMPoint(x + a, y + b));
    if (text) (this.canvas.texts ||= []).push([text, corners.map(at).map((p) => [p.x, p.y])]);
    return fillText.call(this, text, x, y);
  };
}"""
"""Canvases remember what was written on them, and where."""
OF_CANVAS = "(canvas) => canvas.texts.map(([text, at]) => [text, at])"
OF_HANDLES = """(canvas) => {
  const own = canvas.getBoundingClientRect();
  const texts = canvas.parentElement.querySelectorAll('.handle span');
  return [...texts].filter((one) => one.textContent).map((one) => {
    const box = one.getBoundingClientRect(), x = box.x - own.x, y = box.y - own.y;
    const right = x + box.width, low = y + box.height;
    return [one.textContent, [[x, y], [right, y], [right, low], [x, low]]];
  });
}"""
OF_AXIS = """(chart) => [
  ...chart.querySelectorAll('.xtick text, .ytick text, .y2tick text')
].map((one) => {
  const box = one.getBBox(), turned = one.getScreenCTM(), right = box.x + box.width;
  const low = box.y + box.height;
  const corners = [[box.x, box.y], [right, box.y], [right, low], [box.x, low]];
  const at = ([x, y]) => new DOMPoint(x, y).matrixTransform(turned);
  return [one.textContent, corners.map(at).map((p) => [p.x, p.y])];
})"""
Corners = Sequence[Sequence[float]]
Text = tuple[str, Corners]


def overlap(one: Corners, other: Corners) -> bool:
    """Whether two turned boxes meet: no side of either has them on different sides."""
    for corners in (one, other):
        for (x, y), (to_x, to_y) in pairwise(corners[:3]):
            spans = [
                [(px - x) * (to_x - x) + (py - y) * (to_y - y) for px, py in each]
                for each in (one, other)
            ]
            if max(spans[0]) <= min(spans[1]) or max(spans[1]) <= min(spans[0]):
                return False
    return True


def collisions(texts: Sequence[Text]) -> list[tuple[str, str]]:
    return [(a[0], b[0]) for a, b in combinations(texts, 2) if overlap(a[1], b[1])]


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The pages, on a home with profiles 1 to 6 of 80 to 430 layers."""
    home = tmp_path_factory.mktemp("home")
    with seed.settings(home):
        backend = seed.fresh()
        definition = backend.definitions.add_zoo("gpt2")
        for model in MODELS:
            backend.profiles.add(model, definition.id)
        backend.close()
    with dashboard(home) as address:
        yield address


@pytest.fixture(params=WIDTHS)
def visitor(request: pytest.FixtureRequest, browser: Browser) -> Iterator[Page]:
    context = window(browser, request.param)
    page = context.new_page()
    page.set_default_timeout(240_000)
    page.add_init_script(f"({KEEP_TEXTS})()")
    yield page
    context.close()


def handles(page: Page) -> Locator:
    return page.get_by_role("slider", name=re.compile("Cut behind stage"))


def editor(page: Page) -> Locator:
    return page.get_by_role("img", name=re.compile(EDITOR))


def planned(page: Page, url: str, profile: int, detail: str) -> Page:
    asked = f"profile={profile}&cluster=cluster-a:4&planner=even-split&detail={detail}"
    page.goto(f"{url}/plan?{asked}")
    expect(handles(page).first).to_be_visible()
    stands(page)
    return page


@pytest.mark.parametrize(
    ("profile", "detail"),
    [(1, "Folded"), (1, "Blocks"), (1, "Layers"), (3, "Folded"), (3, "Layers"), (6, "Layers")],
)
def test_labels_never_collide(visitor: Page, url: str, profile: int, detail: str) -> None:
    wide = visitor.viewport_size["width"] if visitor.viewport_size else 0
    page = planned(visitor, url, profile, detail)
    texts = editor(page).evaluate(OF_CANVAS)
    assert page.evaluate("() => window.devicePixelRatio") == 1
    assert len(texts) > 12
    assert collisions(texts + editor(page).evaluate(OF_HANDLES)) == []
    keep_screenshot(page, f"big-plan-{profile}-{detail}-{wide}")
    page.goto(f"{url}/profile?id={profile}&detail={detail}")
    charts = page.locator(".js-plotly-plot")
    expect(charts).to_have_count(2)
    stands(page)
    for number in range(2):
        ticks = charts.nth(number).evaluate(OF_AXIS)
        assert len(ticks) > 6
        assert collisions(ticks) == []
    keep_screenshot(page, f"big-profile-{profile}-{detail}-{wide}")


def stop_of(page: Page) -> int:
    """Where the first stage of the partition in the address stops."""
    found = re.search(r"cut=([0-9]+)x", page.url)
    assert found, page.url
    return int(found[1])


def moved(page: Page, key: str) -> int:
    """Where the first cut is after an arrow key on it."""
    before = page.url
    handles(page).first.focus()
    page.keyboard.press(key)
    page.wait_for_url(lambda url: url != before)
    stands(page)
    return stop_of(page)


def test_a_cut_moves_by_blocks_where_they_are_folded_and_by_layers_where_not(
    visitor: Page, url: str
) -> None:
    size, first = len(BLOCK), 1
    page = planned(visitor, url, 2, "Folded")
    begin = moved(page, "ArrowRight")
    assert (begin - first) % size == 0
    assert moved(page, "ArrowRight") == begin + size
    expect(handles(page).first).to_have_attribute(
        "aria-valuetext", re.compile(f"{(begin - first) // size + 1} of 40 blocks")
    )
    box = handles(page).first.bounding_box()
    assert box
    before = page.url
    page.mouse.move(box["x"] + 7, box["y"] + 40)
    page.mouse.down()
    page.mouse.move(box["x"] - 12, box["y"] + 40, steps=6)
    page.mouse.up()
    page.wait_for_url(lambda url: url != before)
    stands(page)
    dragged = stop_of(page)
    assert dragged < begin + size
    assert (dragged - first) % size == 0
    settled(page).get_by_role("radio", name="Layers").click()
    expect(page).to_have_url(re.compile("detail=Layers"))
    expect(handles(page).first).not_to_have_attribute("aria-valuetext", re.compile("blocks"))
    stands(page)
    assert stop_of(page) == dragged
    assert moved(page, "ArrowRight") == dragged + 1

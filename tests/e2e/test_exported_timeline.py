"""The exported HTML file of a run, opened from disk: its timeline is drawn, in both themes."""

import re
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from app.charts.canvas import SCRIPT
from app.exports.timeline_page import timeline_page
from tests.app import seed
from tests.e2e.conftest import SCREENSHOTS, window

pytestmark = pytest.mark.browser
PAINTED = """() => { const canvas = document.querySelector('canvas');
  const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
  const found = new Set();
  for (let i = 0; i < data.length; i += 4)
    if (data[i + 3] === 255) found.add(data.slice(i, i + 3).join(','));
  return [...found]; }"""
FORWARD = "0,114,178"
TWICE = """async (code) => {
  const module = "data:text/javascript," + encodeURIComponent(code);
  const [draw, again] = await Promise.all([1, 2].map(
    async (mark) => (await import(`${module}//${mark}`)).default));
  const parent = document.createElement("div");
  const data = document.querySelector("main").timeline.bytes;
  document.body.append(parent);
  draw({ parentElement: parent, data });
  const end = again({ parentElement: parent, data });
  const drawn = parent.querySelectorAll(".timeline").length;
  end();
  return [draw === again, drawn, parent.querySelectorAll(".timeline").length];
}"""


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_file_needs_no_server(theme: str, browser: Browser, home: Path, tmp_path: Path) -> None:
    backend = seed.fresh()
    found = seed.everything(backend)
    file = tmp_path / "run.html"
    file.write_bytes(timeline_page(backend, backend.runs.get(found.succeeded)))
    context = window(browser, 1200, 600, color_scheme=theme)
    page = context.new_page()
    thrown: list[str] = []
    asked: list[str] = []
    page.on("pageerror", lambda error: thrown.append(str(error)))
    page.on("request", lambda request: asked.append(request.url))
    page.goto(file.as_uri())
    canvas = page.get_by_role("application")
    expect(canvas).to_be_visible()
    page.wait_for_timeout(300)
    assert FORWARD in page.evaluate(PAINTED)
    canvas.focus()
    page.keyboard.press(".")
    expect(page.locator(".said")).to_have_text(re.compile("forward|backward"))
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=SCREENSHOTS / f"exported-timeline-{theme}.png")
    assert page.evaluate(TWICE, SCRIPT.read_text()) == [False, 1, 0]  # drawn once, then taken away
    assert thrown == []
    assert [url for url in asked if not url.startswith(("file:", "data:"))] == []
    context.close()

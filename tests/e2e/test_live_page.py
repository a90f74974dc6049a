"""A run's page while the run goes on: what is new appears, and nothing jumps."""

import re
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.app import seed
from tests.e2e.conftest import settled
from tests.e2e.tour import dashboard, stands

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.timeout(1500)]
EPOCHS = (2, 3)  # those that come while the page is open
TITLE = re.compile(r"vgg_digits again · run \d+ · \d+\s% · Stageflow")
MOST_SHIFT = 0.01  # share of the window times the share of its height, summed over all refreshes
WATCH = """() => {
  window.shifts = [];
  new PerformanceObserver((list) => {
    for (const entry of list.getEntries()) if (!entry.hadRecentInput) window.shifts.push([
      entry.value, ...entry.sources.map((source) => source.node && source.node.className || '')]);
  }).observe({ type: 'layout-shift' });
}"""


def test_what_comes_while_one_looks_moves_nothing(page: Page, tmp_path: Path) -> None:
    home = tmp_path / "home"
    with seed.settings(home, STAGEFLOW_LEASE="3600"):
        backend = seed.fresh()
        definition = backend.definitions.add_zoo("vgg_digits")
        _, profile = seed.profile_run(backend, definition.id)
        plan = seed.plan_for(backend, profile)
        attempt = seed.running(backend, definition.id, plan)
        with dashboard(home, STAGEFLOW_LEASE="3600") as url:
            page.goto(f"{url}/run?id={attempt.run.id}")
            expect(settled(page).get_by_text("Where the time went")).to_be_visible()
            expect(page.get_by_text("update 47 loss").first).to_be_attached()
            page.wait_for_load_state("networkidle")
            expect(page.locator(".timeline[data-drawn]").first).to_be_visible()
            stands(page)
            page.evaluate(WATCH)
            for epoch in EPOCHS:
                seed.train_epoch(backend, attempt, plan, epoch)
                last = (epoch + 1) * seed.PER_EPOCH - 1
                expect(page.get_by_text(f"update {last} loss").first).to_be_attached(
                    timeout=120_000
                )
            expect(page).to_have_title(TITLE)
            settled(page)
            shifts = page.evaluate("window.shifts")
        backend.close()
    assert sum(shift[0] for shift in shifts) < MOST_SHIFT, shifts

"""Programs in a real browser: drawn and taken away on the Plan page, brought in beside others."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from tests.app import seed
from tests.e2e.conftest import keep_screenshot, settled, window
from tests.e2e.tour import Stop, dashboard, visit

pytestmark = pytest.mark.browser
PLAN = "planner=straight&schedule=1f1b-flush&batch=4&cluster=local:2"
PAIRS = "cluster=local:2&pairs=straight:gpipe:4"


@pytest.fixture(scope="module")
def seeded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    home = tmp_path_factory.mktemp("home")
    with seed.settings(home):
        backend = seed.fresh()
        seed.everything(backend)
        backend.close()
    with dashboard(home) as address:
        yield address


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_a_program_goes_out_and_comes_in(
    theme: str, browser: Browser, seeded: str, tmp_path: Path
) -> None:
    context = window(browser, color_scheme=theme)
    page = context.new_page()
    thrown: list[str] = []
    page.on("pageerror", lambda error: thrown.append(str(error)))
    visit(page, seeded, Stop("plan", f"plan?{PLAN}", "Predicted timeline"))
    expect(page.get_by_role("application")).to_have_count(1)
    settled(page).get_by_role("button", name="Download the program").click()
    with page.expect_download() as coming:
        page.get_by_role("button", name="CSV: torch.distributed.pipelining").click()
    file = tmp_path / "order.csv"
    coming.value.save_as(file)
    assert file.read_text().startswith("0F0,")
    keep_screenshot(page, f"12-plan-timeline-{theme}")
    visit(page, seeded, Stop("schedules", f"schedules?{PAIRS}", "Side by side"))
    expect(page.get_by_role("application")).to_have_count(1)
    settled(page).get_by_role("button", name="Import").click()
    page.locator("input[type=file]").set_input_files(file)
    expect(page.get_by_role("application")).to_have_count(2)
    expect(page.get_by_text("order.csv").first).to_be_attached()
    broken = tmp_path / "broken.csv"
    broken.write_text(file.read_text().replace("0F1,", ""))
    page.locator("input[type=file]").set_input_files(broken)
    expect(page.get_by_text("rank 0 never runs 0F1")).to_be_attached()
    page.keyboard.press("Escape")
    keep_screenshot(settled(page), f"13-imported-{theme}")
    assert thrown == []
    context.close()

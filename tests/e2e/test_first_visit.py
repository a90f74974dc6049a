"""From a definition of one's own to a finished run in the history, by hand, in a browser."""

import json
import re
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.e2e.conftest import healthz, keep_screenshot, settled

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.timeout(1500)]
MODEL = Path(__file__).with_name("my_model.py")
RUN_SECONDS = 240_000


def test_first_visit_to_finished_run(page: Page, url: str) -> None:
    assert json.loads(healthz(url))["status"] == "ok"
    upload(page, url)
    profile(page)
    plan(page)
    launch(page)
    number = watch(page)
    find_again(page, number)


def test_the_example_is_carried_to_its_end_by_one_click(page: Page, url: str) -> None:
    page.goto(f"{url}/start")
    settled(page).get_by_role("button", name="Run the example").click()
    expect(page.get_by_role("button", name="Run the example again")).to_be_visible(
        timeout=RUN_SECONDS
    )
    example = page.locator(".st-key-split-start")
    expect(example.get_by_text("succeeded")).to_have_count(2)
    keep_screenshot(page, "0-start")
    settled(page).locator(".st-key-split-start").get_by_role(
        "link", name=re.compile(r"\d+ · vgg_digits")
    ).click()
    expect(page.get_by_text("Measured above predicted").first).to_be_visible()
    expect(page).to_have_title(re.compile(r"^vgg_digits · run \d+ · Stageflow$"))


def upload(page: Page, url: str) -> None:
    page.goto(url)
    expect(settled(page).get_by_role("heading", name="Start")).to_be_visible()
    settled(page).get_by_role("link", name="Add a model").click()
    expect(settled(page).get_by_role("heading", name="Models")).to_be_visible()
    expect(settled(page).get_by_text("No model yet")).to_be_visible()
    keep_screenshot(page, "1-models-empty")
    settled(page).locator("input[type=file]").set_input_files(MODEL)
    expect(settled(page).get_by_text("my_model.py")).to_be_visible()
    settled(page).get_by_role("button", name="Add model").click()
    expect(settled(page).get_by_role("button", name="Profile", exact=True)).to_be_visible()
    keep_screenshot(page, "2-models")


def profile(page: Page) -> None:
    settled(page).get_by_role("button", name="Profile", exact=True).click()
    settled(page).get_by_role("button", name="Start profiling").click()
    settled(page).get_by_role("button", name="Open profile").click(timeout=RUN_SECONDS)
    expect(page).to_have_url(re.compile("/profile"))
    expect(settled(page).get_by_role("heading", name=re.compile("my_model"))).to_be_visible()
    expect(page.locator(".js-plotly-plot").first).to_be_visible()
    keep_screenshot(page, "3-profile")


def plan(page: Page) -> None:
    settled(page).get_by_role("button", name=re.compile("Plan it")).click()
    expect(page).to_have_url(re.compile("/plan"))
    expect(page.get_by_text("Throughput").first).to_be_visible()
    settled(page).get_by_text("Straight pipeline").click()
    expect(page.get_by_text("Predicted timeline").first).to_be_visible()
    expect(page.locator(".js-plotly-plot")).to_have_count(2)
    expect(page.get_by_role("application")).to_have_count(1)
    keep_screenshot(page, "4-plan")


def launch(page: Page) -> None:
    settled(page).get_by_role("button", name="Launch run").click()
    settled(page).get_by_label("Epochs, at most").fill("30")
    settled(page).get_by_label("Epochs, at most").press("Tab")
    settled(page).get_by_role("button", name="Start run").click()
    expect(page).to_have_url(re.compile("/run"))


def watch(page: Page) -> str:
    # A run as short as this may end between two looks at it.
    expect(page.get_by_text(re.compile(r"\b(running|succeeded)\b")).first).to_be_visible(
        timeout=240_000
    )
    keep_screenshot(page, "5-run-live")
    expect(page.get_by_text("succeeded").first).to_be_visible(timeout=RUN_SECONDS)
    expect(page.get_by_text("Measured above predicted").first).to_be_visible()
    expect(page.get_by_text("model.safetensors").first).to_be_visible()
    keep_screenshot(page, "6-run-done")
    found = re.search(r"run (\d+)", page.get_by_role("heading", level=1).first.inner_text())
    assert found
    return found[1]


def find_again(page: Page, number: str) -> None:
    settled(page).get_by_role("link", name="Runs").click()
    row = settled(page).get_by_role("link", name=re.compile(rf"^{number}\b"))
    expect(row).to_be_visible()
    keep_screenshot(page, "7-runs")
    row.click()
    expect(page.get_by_text("Measured above predicted").first).to_be_visible()


def test_a_failing_model_is_understood_from_its_page(page: Page, url: str, tmp_path: Path) -> None:
    broken = tmp_path / "broken.py"
    broken.write_text(
        'DATA = "digits"\n\n\ndef model():\n    raise ValueError("seven layers are not enough")\n'
    )
    page.goto(f"{url}/models")
    settled(page).locator("input[type=file]").set_input_files(broken)
    settled(page).get_by_role("button", name="Add model").click()
    expect(page.get_by_text("broken", exact=True).first).to_be_visible()
    settled(page).get_by_role("button", name="Profile", exact=True).first.click()
    settled(page).get_by_role("button", name="Start profiling").click()
    expect(page.get_by_text("failed").first).to_be_visible(timeout=RUN_SECONDS)
    expect(page.get_by_text("seven layers are not enough").first).to_be_visible()
    keep_screenshot(page, "8-run-failed")


def test_a_file_that_is_no_python_is_refused_on_the_page(
    page: Page, url: str, tmp_path: Path
) -> None:
    faulty = tmp_path / "faulty.py"
    faulty.write_text("def model(:\n")
    page.goto(f"{url}/models")
    settled(page).locator("input[type=file]").set_input_files(faulty)
    settled(page).get_by_role("button", name="Add model").click()
    expect(page.get_by_text(re.compile("line 1")).first).to_be_visible()
    expect(page.get_by_text("Traceback")).to_have_count(0)
    keep_screenshot(page, "9-upload-refused")

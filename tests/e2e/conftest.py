"""A Stageflow of one's own (`stageflow up`) and a real Chromium to look at it with."""

import os
import shutil
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import (
    Browser,
    BrowserContext,
    Page,
    ViewportSize,
    expect,
    sync_playwright,
)

from tests.ports import free_port

SCREENSHOTS = Path(__file__).parents[2] / "test-results" / "screenshots"
expect.set_options(timeout=240_000)  # milliseconds; a loaded machine is slow, not wrong
CHROMIUM_ARGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--js-flags=--no-turbofan,--no-maglev",  # pages of a few seconds never pay for optimising
]


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a dashboard with a node agent, on an empty home."""
    home = tmp_path_factory.mktemp("home")
    port = free_port()
    variables = {k: v for k, v in os.environ.items() if not k.startswith("STAGEFLOW_")}
    log = (home / "up.log").open("wb")
    up = subprocess.Popen(
        [sys.executable, "-m", "app.cli", "up", "--port", str(port)],
        env=variables | {"STAGEFLOW_HOME": str(home)},
        stdout=log,
        stderr=subprocess.STDOUT,
    )
    try:
        _await_agent(home / "up.log", up)
        yield f"http://127.0.0.1:{port}"
    finally:
        up.send_signal(signal.SIGTERM)
        up.wait(timeout=120)


def _await_agent(log: Path, up: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + 240
    while "Node agent" not in log.read_text():
        assert up.poll() is None, log.read_text()
        assert time.monotonic() < deadline, log.read_text()
        time.sleep(0.2)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Debian's Chromium, or whichever is on PATH."""
    found = shutil.which("chromium") or shutil.which("google-chrome")
    assert found, "no Chromium on PATH: make browser"
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=found, args=CHROMIUM_ARGS)
        yield chromium
        chromium.close()


def window(browser: Browser, width: int = 1440, height: int = 1000, **more: Any) -> BrowserContext:
    """A visitor's window. Nothing moves in it: what shimmers while it waits is drawn 60 times a
    second, which costs as much as all else that a browser does."""
    size: ViewportSize = {"width": width, "height": height}
    return browser.new_context(viewport=size, reduced_motion="reduce", **more)


@pytest.fixture(scope="module")
def shared(browser: Browser) -> Iterator[BrowserContext]:
    """The window of the fresh visitors, one after the other: scripts of ours are read slowly the
    first time alone."""
    context = window(browser)
    yield context
    context.close()


@pytest.fixture
def page(shared: BrowserContext) -> Iterator[Page]:
    """A fresh visitor; what the page's own scripts throw fails the test."""
    visitor = shared.new_page()
    visitor.set_default_timeout(240_000)
    thrown: list[str] = []
    visitor.on("pageerror", lambda error: thrown.append(str(error)))
    yield visitor
    visitor.evaluate("() => { localStorage.clear(); sessionStorage.clear(); }")
    for one in shared.pages:
        one.close()
    shared.clear_cookies()
    assert thrown == []


def settled(page: Page) -> Page:
    """The page once its script has ended: while it runs, the old stands beside the new."""
    expect(page.get_by_test_id("stApp")).to_have_attribute("data-test-script-state", "notRunning")
    return page


def keep_screenshot(page: Page, name: str) -> None:
    """The whole page as a picture, to be looked at; where PICTURES is set, as no test reads it."""
    if "PICTURES" not in os.environ:
        return
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    page.wait_for_timeout(800)
    page.screenshot(path=SCREENSHOTS / f"{name}.png", full_page=True)


def healthz(url: str) -> bytes:
    with urllib.request.urlopen(f"{url}/healthz", timeout=120) as answer:
        body: bytes = answer.read()
    return body


__all__ = ["expect", "healthz", "keep_screenshot", "settled", "window"]

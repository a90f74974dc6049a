"""How soon the Plan page says a first plan, and its last one, after somebody asks.

    python -m tests.benchmarks.bench_first_answer [--servers 4,6,9,12,16] [--write]

Published profiles on servers of four V100, in Chromium: each number of servers is typed into the
open page; "fresh" is a browser that was never there, one that "was there before" has drawn the Plan
page once, of another question, and has the scripts in its cache. The clock is in this process,
which looks every few milliseconds: from Enter, or from opening the address, to the changed
samples/s, and to those that then stay for `STAYS` seconds. Of a browser that opens the page it says
too when that asked for it: before that it loads Streamlit's own scripts.
"""

import argparse
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median

from playwright.sync_api import Browser, Page, sync_playwright

from tests.app import seed
from tests.benchmarks.bench_pages import dashboard
from tests.benchmarks.evidence import evidence
from tests.e2e.emulated_case import keep_published

MODELS = {"vgg16": "vgg16", "resnet50": "resnet50"}
"""Folder of the profile, and the zoo's model that it is kept with."""
MICROBATCH, STAYS = 128, 6.0
OTHER_BATCH = 5
"""Microbatches per update: questions as large as those before, and not answered yet."""
HEAD = [
    *("asked", "model", "questions", "Streamlit's scripts, median"),
    *("first plan, median and slowest", "last plan"),
]
RATE = "[data-testid=stMetricValue]"


def main() -> None:
    found = evidence("pages", "bench_first_answer")
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--servers", default="4,6,9,12,16")
    servers = parser.parse_args().servers.split(",")
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    with (
        tempfile.TemporaryDirectory() as folder,
        sync_playwright() as playwright,
        seed.settings(Path(folder)),
    ):
        backend = seed.fresh()
        keep_published(backend, MODELS, MICROBATCH)
        backend.close()
        browser = playwright.chromium.launch(
            executable_path=chromium, args=["--no-sandbox", "--disable-gpu"]
        )
        with dashboard() as (url, *_):
            found.table("first-answer", HEAD, rows(browser, url, servers))
        browser.close()


def rows(browser: Browser, url: str, servers: list[str]) -> Iterator[list[str]]:
    for number, model in enumerate(MODELS, start=1):
        asked, page = [], opened(browser)
        page.goto(f"{url}/plan?profile={number}&cluster=cluster-a:2")
        answered(page, "", time.monotonic())
        for count in servers:
            before, box = page.locator(RATE).first.inner_text(), page.get_by_label("Servers")
            box.fill(count)
            start = time.monotonic()
            box.press("Enter")
            asked.append((0.0, *answered(page, before, start)))
        yield row("in the open page", model, asked)
        page.context.close()
    for number, model in enumerate(MODELS, start=1):
        asked = []
        for count in servers:
            page = opened(browser)
            asked.append(visit(page, address(url, number, int(count) + 1)))
            page.context.close()
        yield row("in a fresh browser", model, asked)
    for number, model in enumerate(MODELS, start=1):
        asked, known = [], opened(browser)
        visit(known, address(url, number, 3))
        known.close()
        for count in servers:
            page = known.context.new_page()
            asked.append(visit(page, f"{address(url, number, int(count) + 1)}&batch={OTHER_BATCH}"))
            page.close()
        known.context.close()
        yield row("in one that was there before", model, asked)


def address(url: str, profile: int, servers: int) -> str:
    return f"{url}/plan?profile={profile}&cluster=cluster-a:{servers}"


def visit(page: Page, where: str) -> tuple[float, float, float]:
    """Seconds to the page being asked for, to its first plan and to its last one."""
    spoken = list[float]()
    page.on("websocket", lambda _: spoken.append(time.monotonic()))
    start = time.monotonic()
    page.goto(where)
    first, last = answered(page, "", start)
    return spoken[0] - start, first, last


def opened(browser: Browser) -> Page:
    return browser.new_context(viewport={"width": 1440, "height": 1000}).new_page()


def answered(page: Page, before: str, start: float) -> tuple[float, float]:
    """Seconds since `start` to samples/s other than `before`, and to those that stay."""
    said, first, last = before, 0.0, 0.0
    while not first or time.monotonic() - start < last + STAYS:
        values = page.locator(RATE).all_inner_texts()[:1]
        if values and values[0].endswith("/s") and values[0] != said:
            said, last = values[0], time.monotonic() - start
            first = first or last
        time.sleep(0.005)
    return first, last


def row(asked: str, model: str, found: list[tuple[float, float, float]]) -> list[str]:
    scripts, firsts, lasts = zip(*found, strict=True)
    before = f"{median(scripts):.2f} s" if any(scripts) else "there already"
    first = f"{median(firsts):.2f} s, {max(firsts):.2f} s"
    last = f"{median(lasts):.2f} s, {max(lasts):.2f} s"
    return [asked, model, str(len(found)), before, first, last]


if __name__ == "__main__":
    main()

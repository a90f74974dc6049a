"""How fast the pages are in a real browser, on 100,000 runs and 10,000,000 metric points.

    python -m tests.benchmarks.bench_pages [--database sqlite] [--home FOLDER]

Start-up is from the process to the first answer of /healthz; a first page is opened by a browser
that has never been there; from page to page is a click in the sidebar until the page stands: its
title, its slowest part, and no script running. `--home` keeps the filled database for next time.
"""

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
from playwright.sync_api import Browser, Page, sync_playwright

from tests.app import seed
from tests.benchmarks.bench_history import fill
from tests.ports import free_port
from tests.postgres import Postgres

ROUNDS = 5
READS = 3_000  # milliseconds that somebody looks at the first page
PLOT, CANVAS = ".js-plotly-plot .main-svg", "[data-testid=stBidiComponentIsolated]"
PAGES = (  # link in the sidebar, path, title, slowest part
    ("Models", "models", "Models", "[data-testid=stFileUploader]"),
    ("Profile", "profile", "vgg_digits", PLOT),
    ("Plan", "plan", "vgg_digits", PLOT),
    ("Compare schedules", "schedules", "Compare schedules", CANVAS),
    ("What if", "what_if", "What if", PLOT),
    ("Runs", "runs", "Runs", "[data-testid=stPagination]"),
    ("Run", "run", "vgg_digits", CANVAS),
    ("Compare", "compare", "Compare", "[data-testid=stMultiSelect]"),
    ("Launch", "launch", "Launch", "[data-testid=stNumberInput]"),
    ("Nodes", "nodes", "Nodes", "[data-testid=stMetric]"),
)
STANDS = """([path, title, part]) => {
  const app = document.querySelector('[data-testid=stApp]');
  const main = document.querySelector('[data-testid=stMain]');
  const head = main && main.querySelector('h1');
  return location.pathname === `/${path}` && head && head.innerText.includes(title)
    && app.getAttribute('data-test-script-state') === 'notRunning' && main.querySelector(part)
    && !document.querySelector('[data-stale=true]');
}"""


@contextmanager
def filled(kind: str, folder: Path, num_runs: int, num_points: int) -> Iterator[None]:
    """A home that holds them, and the variables that say so."""
    os.environ["STAGEFLOW_HOME"] = str(folder)
    new, server = not folder.exists(), None
    folder.mkdir(parents=True, exist_ok=True)
    if kind == "postgresql":
        server = Postgres(folder / "pg")
        os.environ["STAGEFLOW_DATABASE_URL"] = server.url
    backend = seed.fresh()
    if new:
        fill(backend, num_runs, num_points)
        found = seed.everything(backend)
        seed.succeeded(backend, found.definition, backend.plans.get(found.plan))
    backend.close()
    try:
        yield
    finally:
        os.environ.pop("STAGEFLOW_DATABASE_URL", None)
        if server:
            server.close()


@contextmanager
def dashboard(module: str = "app.asgi") -> Iterator[tuple[str, psutil.Process, float]]:
    """Its address, its process, and the seconds until it answered."""
    port = free_port()
    start = time.perf_counter()
    server = subprocess.Popen(
        [sys.executable, "-m", module], env=os.environ | {"STAGEFLOW_PORT": str(port)}
    )
    url = f"http://127.0.0.1:{port}"
    try:
        while True:
            try:
                urllib.request.urlopen(f"{url}/healthz", timeout=5).close()
                break
            except OSError:
                time.sleep(0.01)
        yield url, psutil.Process(server.pid), time.perf_counter() - start
    finally:
        server.terminate()
        try:
            server.wait(timeout=20)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()


def first_page(browser: Browser, url: str) -> float:
    """Seconds until the list of runs stands before somebody who was never here."""
    context = browser.new_context(viewport={"width": 1440, "height": 1000})
    page = context.new_page()
    start = time.perf_counter()
    page.goto(url, wait_until="commit")
    page.wait_for_function(STANDS, arg=["runs", "Runs", "[data-testid=stPagination]"])
    took = time.perf_counter() - start
    context.close()
    return took


def clicks(page: Page) -> dict[str, list[float]]:
    """Seconds from the click to the page that stands, by page, in the order of the rounds."""
    found: dict[str, list[float]] = {link: [] for link, *_ in PAGES}
    nav = page.get_by_test_id("stSidebarNav")
    for _ in range(ROUNDS):
        for link, *stands in PAGES:
            target = nav.get_by_role("link", name=link, exact=True)
            start = time.perf_counter()
            target.click()
            page.wait_for_function(STANDS, arg=stands)
            found[link].append(time.perf_counter() - start)
            page.wait_for_timeout(300)
    return found


def report(browser: Browser, name: str) -> None:
    with dashboard() as (url, process, start):
        print(f"{name}: answers after {start:.2f} s")
        print(f"  first page after start-up {first_page(browser, url):.2f} s")
        print(f"  first page, another visitor {first_page(browser, url):.2f} s")
        page = browser.new_context(viewport={"width": 1440, "height": 1000}).new_page()
        page.goto(f"{url}/runs")
        page.wait_for_function(STANDS, arg=["runs", "Runs", "[data-testid=stPagination]"])
        page.wait_for_timeout(READS)
        for link, times in clicks(page).items():
            again = statistics.median(times[1:])
            print(f"  to {link:18} first {times[0]:.2f} s, then {again:.2f} s", flush=True)
        page.context.close()
        print(f"  memory of the server {process.memory_info().rss / 2**20:.0f} MiB")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=100_000)
    parser.add_argument("--points", type=int, default=100, help="metric points of each run")
    parser.add_argument("--database", choices=("sqlite", "postgresql"), action="append")
    parser.add_argument("--home", type=Path, help="keep the filled databases here")
    given = parser.parse_args()
    for name in [name for name in os.environ if name.startswith("STAGEFLOW_")]:
        del os.environ[name]
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=chromium, args=["--no-sandbox", "--disable-gpu"]
        )
        for kind in given.database or ("sqlite", "postgresql"):
            home = (given.home or Path(folder)) / kind
            with filled(kind, home, given.runs, given.points):
                report(browser, kind)
        browser.close()


if __name__ == "__main__":
    main()

"""Every page in the states worth looking at, and a dashboard that shows them."""

import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from playwright.sync_api import Page, expect

from tests.app.seed import settings
from tests.e2e.conftest import healthz, settled


@dataclass(frozen=True, slots=True)
class Stop:
    """`shows` is what stands there once the page is drawn."""

    name: str
    path: str
    shows: str


EMPTY = (
    Stop("start-empty", "start", "in four steps"),
    Stop("models-empty", "models", "No model yet"),
    Stop("profile-empty", "profile", "No profile yet"),
    Stop("plan-empty", "plan", "No profile yet"),
    Stop("schedules-empty", "schedules", "No profile yet"),
    Stop("what-if-empty", "what_if", "No profile yet"),
    Stop("runs-empty", "runs", "No run yet"),
    Stop("run-empty", "run", "No run yet"),
    Stop("compare-empty", "compare", "No training run yet"),
    Stop("launch-empty", "launch", "No plan is kept yet"),
    Stop("nodes-empty", "nodes", "No node yet"),
)
SEEDED = (  # with the runs of tests/app/seed.py: 1 to 6, one in each state
    Stop("start", "start", "in four steps"),
    Stop("models", "models", "Kept models"),
    Stop("profile", "profile", "Layers"),
    Stop("plan", "plan", "Why this one"),
    Stop("schedules", "schedules", "Weight versions and staleness"),
    Stop("what-if", "what_if", "What if"),
    Stop("runs", "runs", "6 runs"),
    Stop("run-profile", "run?id=1", "The profile is ready"),
    Stop("run-succeeded", "run?id=2", "16 loss"),
    Stop("run-failed", "run?id=3", "the loss is nan"),
    Stop("run-cancelled", "run?id=4", "cancelled"),
    Stop("run-running", "run?id=5", "Measured above predicted"),
    Stop("run-queued", "run?id=6", "queued"),
    Stop("run-unknown", "run?id=99", "no run 99"),
    Stop("compare", "compare?runs=2,5", "Summary"),
    Stop("compare-nothing", "compare", "Compare"),
    Stop("launch", "launch", "Values"),
    Stop("launch-again", "launch?run=2", "Values"),
    Stop("nodes", "nodes", "Runs now"),
)


def visit(page: Page, url: str, stop: Stop) -> None:
    """Go there and wait until the page stands."""
    page.goto(f"{url}/{stop.path}")
    expect(settled(page).get_by_text(stop.shows).first).to_be_visible()
    expect(page.locator("[data-stale=true]")).to_have_count(0)
    settled(page)


@contextmanager
def dashboard(home: Path, **variables: str) -> Iterator[str]:
    """The address of the pages on this home, without an agent; `variables` are settings."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with settings(home, STAGEFLOW_PORT=str(port), **variables):
        server = subprocess.Popen([sys.executable, "-m", "app.asgi"])
        try:
            _await(f"http://127.0.0.1:{port}", server)
            yield f"http://127.0.0.1:{port}"
        finally:
            server.terminate()
            server.wait(timeout=60)


def _await(url: str, server: "subprocess.Popen[bytes]") -> None:
    deadline = time.monotonic() + 120
    while True:
        try:
            healthz(url)
            return
        except OSError:
            assert server.poll() is None, "the dashboard ended"
            assert time.monotonic() < deadline, "the dashboard did not start"
            time.sleep(0.1)

"""From a changed cut to the new prediction on the Plan page, in a real browser.

    python -m tests.benchmarks.bench_edit [--graph graph.txt] [--cluster C] [--write]

Cuts are dragged with the mouse, then moved by arrow keys, to partitions that nobody has
asked for before; the clock runs in the page, from the drop or the key to the moment at which a
figure has changed.
`--graph` plans a profile in PipeDream's form instead of the seeded one.
"""

import argparse
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import pairwise
from pathlib import Path

from playwright.sync_api import Page, TimeoutError, sync_playwright

from backend.profiles.graph_txt import read_graph
from backend.profiles.profile import Profile
from tests.app import seed
from tests.benchmarks.evidence import evidence
from tests.ports import free_port

HANDLES, WIDE, WARM = 3, 3, 4
TARGET = 300  # milliseconds
HEAD = ["how", "model", "moves", "median", "slowest", f"within {TARGET} ms"]
LIMIT = 5_000  # milliseconds: a move that changes no figure is not counted
PROBE = """() => {
  const figure = () => [...document.querySelectorAll('[data-testid=stMetric]')]
    .map((one) => one.innerText).join();
  let began = 0, before = '';
  window.took = [];
  const begin = () => { began = performance.now(); before = figure(); };
  document.addEventListener('pointerup', begin, true);
  document.addEventListener('keydown', (e) => { if (e.key.startsWith('Arrow')) begin(); }, true);
  new MutationObserver(() => {
    const now = figure();
    if (began && now && now !== before) { window.took.push(performance.now() - began); began = 0; }
  }).observe(document.body, { subtree: true, childList: true, characterData: true });
}"""


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--graph", type=Path)
    asked.add_argument("--microbatch", type=int, default=64)
    asked.add_argument("--cluster", default="local:4")
    page, given = evidence("pages", "bench_edit"), asked.parse_args()
    profile = seed.a_profile()
    if given.graph:
        profile = read_graph(given.graph.read_text(), given.graph.parent.name, given.microbatch)
    page.table("edit", HEAD, rows(profile, given.cluster))


def rows(profile: Profile, cluster: str) -> Iterator[list[str]]:
    for how, act in (("dragged with the mouse", _drag), ("an arrow key", _press)):
        with tempfile.TemporaryDirectory() as folder, dashboard(Path(folder), profile) as url:
            took = measured(f"{url}/plan?profile=1&cluster={cluster}&planner=even-split", act)
        times = (f"{one:.0f} ms" for one in (statistics.median(took), max(took)))
        model = f"{len(profile.layers)} layers on {cluster}"
        yield [how, model, str(len(took)), *times, str(sum(one <= TARGET for one in took))]


@contextmanager
def dashboard(home: Path, profile: Profile) -> Iterator[str]:
    """The pages alone, on a home with this profile."""
    port = free_port()
    os.environ |= {"STAGEFLOW_HOME": str(home), "STAGEFLOW_PORT": str(port)}
    backend = seed.fresh()
    backend.profiles.add(profile, backend.definitions.add_zoo("vgg_digits").id)
    backend.close()
    server = subprocess.Popen([sys.executable, "-m", "app.asgi"])
    try:
        while socket.socket().connect_ex(("127.0.0.1", port)):
            time.sleep(0.1)
        yield f"http://127.0.0.1:{port}"
    finally:
        server.terminate()
        server.wait(timeout=30)


def measured(address: str, act: Callable[[Page, int, int], None]) -> list[float]:
    """Milliseconds of each move of the first cut, to and fro, once everything is warm."""
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(
            executable_path="/usr/bin/chromium", args=["--no-sandbox", "--disable-gpu"]
        )
        page = chromium.new_page(viewport={"width": 1440, "height": 1000})
        page.set_default_timeout(60_000)
        page.goto(address)
        page.get_by_role("slider").first.wait_for()
        page.wait_for_timeout(3_000)
        page.evaluate(PROBE)
        states = snake(HANDLES)
        for before, after in pairwise(states):
            _move(page, before, after, act)
        took: list[float] = page.evaluate("window.took")
        chromium.close()
    return took[WARM:]


def snake(handles: int) -> list[tuple[int, ...]]:
    """Every place of so many handles, each one step from the place before."""
    if not handles:
        return [()]
    rest = snake(handles - 1)
    return [(at, *more) for at in range(WIDE) for more in (rest[::-1] if at % 2 else rest)]


def _move(
    page: Page,
    before: tuple[int, ...],
    after: tuple[int, ...],
    act: Callable[[Page, int, int], None],
) -> None:
    (handle,) = (n for n in range(HANDLES) if before[n] != after[n])
    known = page.evaluate("window.took.length")
    act(page, handle, 1 if after[handle] > before[handle] else -1)
    with suppress(TimeoutError):
        page.wait_for_function(f"window.took.length > {known}", timeout=LIMIT)
    page.wait_for_timeout(400)


def _press(page: Page, handle: int, layers: int) -> None:
    """Move the cut by so many layers with one key."""
    cut = page.get_by_role("slider").nth(handle)
    cut.focus()
    cut.press("ArrowRight" if layers > 0 else "ArrowLeft")


def _drag(page: Page, handle: int, layers: int) -> None:
    """Move the cut by so many layers, and drop it."""
    cuts = page.get_by_role("slider")
    here, other = (cuts.nth(number).bounding_box() for number in (0, 1))
    stops = [int(cuts.nth(n).get_attribute("aria-valuenow") or 0) for n in (0, 1)]
    box = cuts.nth(handle).bounding_box()
    assert here
    assert other
    assert box
    wide = (other["x"] - here["x"]) / (stops[1] - stops[0])
    x, y = box["x"] + box["width"] / 2, box["y"] + 60
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x + layers * wide, y, steps=4)
    page.mouse.up()


if __name__ == "__main__":
    main()

"""Pictures of every page in every state into docs/screenshots, to be looked at: `make screenshots`.

The home holds a really executed training (`stageflow demo`), beside it the runs of
tests/app/seed.py, so that every state is there. The README's picture is of a home of its own
(tests/e2e/emulated_case.py).
"""

import argparse
import io
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import product
from pathlib import Path

from PIL import Image
from playwright.sync_api import Browser, Page, sync_playwright

from app.server import launch
from backend.cluster.presets import local
from backend.runs.dispatch.nodes import Use
from backend.runs.history.listing import RunFilter
from backend.settings import load_settings
from tests.app import seed
from tests.e2e import emulated_case
from tests.e2e.conftest import CHROMIUM_ARGS
from tests.e2e.tour import (
    COOKIE,
    EMPTY,
    SEEDED,
    TEAM,
    Stop,
    a_team,
    dashboard,
    stands,
    visit,
)
from tests.ports import free_port

FOLDER = Path(__file__).parents[2] / "docs" / "screenshots"
WIDTHS = (1440, 768)
README_WIDTH = 1200
MARGIN = 14  # pixels below the last line
SCHEMES = ("light", "dark")
LEAST, TALL, TALLEST = 700, 1000, 4000  # pixels; a menu opens downwards on a tall page
QUALITY = 72
LEASE = "3600"  # seconds: the seeded runs go on without an agent
VERSIONS = {"python": "3.11", "torch": "2.13.0"}
USE = (Use("machine", 0.43, 3.1 * 2**30, 15.6 * 2**30, 54.0),)
HEIGHT = """() => {
  const main = document.querySelector('[data-testid=stMain]');
  return Math.max(...[...main.children].map((box) => box.scrollHeight));
}"""


def fill(home: Path) -> seed.Seeded:
    """A real run first; then others in every state, beside it."""
    with seed.settings(home, STAGEFLOW_LEASE=LEASE, STAGEFLOW_PORT=str(free_port())):
        demo = [sys.executable, "-m", "app.cli", "demo", "--no-serve"]
        subprocess.run(demo, check=True, stdout=subprocess.DEVNULL)
        backend = seed.fresh()
        real = backend.runs.list(RunFilter(kind="train")).runs[0]
        plan = seed.plan_for(backend, backend.profiles.list()[0])
        for _ in range(6):
            seed.succeeded(backend, real.spec.definition_id, plan)
            seed.cancelled(backend, real.spec.definition_id, plan)
        found = seed.everything(backend)
        backend.nodes.beat(seed.NODE, local(2).each, VERSIONS, USE)
        backend.close()
    return replace(found, succeeded=real.id)


@contextmanager
def redis(home: Path) -> Iterator[None]:
    """The queue that a run waits in."""
    with seed.settings(home):
        settings = load_settings()
    with launch.redis(settings):
        yield


def shoot(
    browser: Browser,
    url: str,
    stops: Sequence[Stop],
    looks: Iterable[tuple[int, str]],
    found: seed.Seeded | None = None,
    secret: str = "",
    last: str = "",
) -> None:
    """`secret`: that of the browser of somebody who has signed in. `last`: the text below which
    nothing is kept."""
    for width, scheme in looks:
        context = browser.new_context(color_scheme=scheme)  # type: ignore[arg-type]
        if secret:
            context.add_cookies([{"name": COOKIE, "value": secret, "url": url}])
        page = context.new_page()
        page.set_default_timeout(90_000)
        for stop in stops:
            page.set_viewport_size({"width": width, "height": TALL})
            visit(page, url, stop, found)
            if stop.acts:
                stop.acts(page)
            least = TALL if stop.acts else LEAST
            keep(page, width, f"{stop.name}-{scheme}-{width}", last, least)
        context.close()


def keep(page: Page, width: int, name: str, last: str = "", least: int = LEAST) -> None:
    """The whole page, once its charts are drawn, `least` pixels tall; not below the text `last`
    where one is given."""
    page.wait_for_timeout(900)
    tall = min(TALLEST, max(least, page.evaluate(HEIGHT)))
    page.set_viewport_size({"width": width, "height": tall})
    page.wait_for_timeout(500)
    stands(page)
    picture = Image.open(io.BytesIO(page.screenshot())).convert("RGB")
    if last and (box := page.get_by_text(last).first.bounding_box()):
        picture = picture.crop((0, 0, width, round(box["y"] + box["height"]) + MARGIN))
    picture.save(FOLDER / f"{name}.webp", quality=QUALITY, method=6)


def seeded(browser: Browser, home: Path, stops: Sequence[Stop]) -> None:
    found = fill(home)
    with redis(home), dashboard(home, STAGEFLOW_LEASE=LEASE) as url:
        shoot(browser, url, stops, product(WIDTHS, SCHEMES), found)


def empty(browser: Browser, home: Path, stops: Sequence[Stop]) -> None:
    with seed.settings(home):
        seed.fresh().close()
    with dashboard(home) as url:
        shoot(browser, url, stops, zip(WIDTHS, SCHEMES, strict=True))


def team(browser: Browser, home: Path, stops: Sequence[Stop]) -> None:
    with seed.settings(home):
        backend = seed.fresh()
        secret = a_team(backend)
        backend.close()
    with dashboard(home, STAGEFLOW_SIGN_IN="accounts") as url:
        shoot(browser, url, stops, product(WIDTHS, SCHEMES), secret=secret)


def an_agent(home: Path) -> None:
    """A node that is alive, as `stageflow up` has one."""
    with seed.settings(home):
        backend = seed.fresh()
        backend.nodes.beat(seed.NODE, local(4).each, VERSIONS, USE)
        backend.close()


def emulated(browser: Browser, home: Path, stops: Sequence[Stop]) -> None:
    """A newcomer's pages, the first of them before anything is there; and the picture of the
    README: narrow, so that its words can be read there, and short."""
    if not emulated_case.PUBLISHED.is_dir():
        return print(f"no published profiles at {emulated_case.PUBLISHED}: no picture of them")
    looks = list(product(WIDTHS, SCHEMES))
    first = [stop for stop in stops if stop in emulated_case.AT_FIRST]
    if first:
        an_agent(fresh := home.with_name("newcomer"))
        with dashboard(fresh, STAGEFLOW_LEASE=LEASE) as url:
            shoot(browser, url, first, looks)
    if len(first) == len(stops):
        return None
    emulated_case.run(home)
    an_agent(home)
    with dashboard(home, STAGEFLOW_LEASE=LEASE) as url:
        if emulated_case.STOP in stops:
            narrow = product((README_WIDTH,), SCHEMES)
            shoot(browser, url, [emulated_case.STOP], narrow, last=emulated_case.RATES)
        others = [stop for stop in stops if stop not in (emulated_case.STOP, *first)]
        shoot(browser, url, others, looks)
    return None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="stops whose name matches this")
    given = parser.parse_args()
    FOLDER.mkdir(parents=True, exist_ok=True)
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    published = (emulated_case.STOP, *emulated_case.NEWCOMER)
    homes = ((seeded, SEEDED), (empty, EMPTY), (team, TEAM), (emulated, published))
    with (
        tempfile.TemporaryDirectory(prefix="stageflow-") as folder,
        sync_playwright() as playwright,
    ):
        browser = playwright.chromium.launch(executable_path=chromium, args=CHROMIUM_ARGS)
        for pictures, known in homes:
            home = Path(folder) / pictures.__name__
            if stops := [stop for stop in known if re.search(given.only, stop.name)]:
                pictures(browser, home, stops)
        browser.close()


if __name__ == "__main__":
    main()

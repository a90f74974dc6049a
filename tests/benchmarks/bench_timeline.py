"""A million actions on the Run page: how soon they are drawn, and how smoothly they move.

    python -m tests.benchmarks.bench_timeline [--actions 500000 1000000] [--write]

A run's measured segment of so many actions on 8 ranks, with as many predicted below, joined. The
clock runs from opening the address to the first drawing; then the timeline is dragged in the page,
whole and zoomed in, and the milliseconds of each redrawing are what the canvas itself counts.
"""

import argparse
import os
import shutil
import statistics
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
from playwright.sync_api import Browser, Page, sync_playwright

from backend.bootstrap import Backend
from backend.cluster.presets import local
from backend.pipeline.columns import SCHEMA
from backend.runs.run import RunSummary
from backend.runs.states import RunState
from tests.app import seed
from tests.benchmarks.bench_pages import dashboard
from tests.benchmarks.evidence import evidence

RANKS, VISITS, DRAGS = 8, 4, 60
HEAD = [
    "measured actions, as many predicted",
    "first visitor, s",
    "three more, s",
    "dragging the first microbatches, ms (median, slowest)",
    "dragging everything, ms",
    "server, MiB",
]
FORWARD, BACKWARD = 1.0e-3, 2.0e-3  # seconds
CANVAS = "[data-testid=stBidiComponentIsolated]"
DRAWN = """() => [...document.querySelectorAll('*')].some((box) => box.shadowRoot
    && box.shadowRoot.querySelector('.timeline[data-drawn]'))"""
PLAN = "() => document.querySelector('.js-plotly-plot .main-svg')"
CENTRE = """() => {
  const box = [...document.querySelectorAll('*')].map((one) => one.shadowRoot
    && one.shadowRoot.querySelector('.timeline canvas')).find(Boolean);
  box.scrollIntoView({ block: 'center' });
  const at = box.getBoundingClientRect();
  return [at.left + at.width / 2, at.top + at.height / 2];
}"""
LAST = """() => Number([...document.querySelectorAll('*')].map((one) => one.shadowRoot
    && one.shadowRoot.querySelector('.timeline')).find(Boolean).dataset.drawn)"""


def rank_of_actions(rank: int, count: int, noise: float) -> bytes:
    """Forwards and backwards in turn, every one of them `noise` longer or shorter."""
    numbers = np.arange(count)
    backward = numbers % 2 == 1
    takes = np.where(backward, BACKWARD, FORWARD)
    takes = takes * (1 + noise * np.random.default_rng(rank).uniform(-1, 1, count))
    end = np.cumsum(takes) + rank * FORWARD
    columns = {
        "rank": np.full(count, rank),
        "index": numbers,
        "stage": np.full(count, rank),
        "microbatch": numbers // 2,
        "version": np.zeros(count),
        "peer": np.full(count, -1),
        "start": end - takes,
        "end": end,
    }
    arrays = {
        name: pa.array(column).cast(SCHEMA.field(name).type) for name, column in columns.items()
    }
    letters = pa.array(backward.astype(np.int8))
    arrays["kind"] = pa.DictionaryArray.from_arrays(letters, ["F", "B"])
    arrays["group"] = pa.nulls(count, SCHEMA.field("group").type)
    batch = pa.record_batch([arrays[name] for name in SCHEMA.names], schema=SCHEMA)
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    with pa.ipc.new_file(sink, SCHEMA, options=options) as writer:
        writer.write_batch(batch)
    return bytes(sink.getvalue())


def fill(backend: Backend, num_actions: int) -> int:
    """A finished run with them; its id."""
    definition = backend.definitions.add_zoo("vgg_digits")
    _, profile = seed.profile_run(backend, definition.id)
    cluster = local(RANKS)
    found = seed.predicted(profile.profile, cluster)
    longest = max(found, key=lambda p: len(p.plan.partition.stages))
    plan = backend.plans.save(profile.id, cluster, longest)
    attempt = seed.claim(backend, seed.submit(backend, definition.id, plan))
    for kind, noise in (("measured", 0.1), ("predicted", 0.0)):
        for rank in range(RANKS):
            each = num_actions // RANKS
            attempt.spans(kind, rank, 0, rank_of_actions(rank, each, noise), each)
    attempt.finish(RunState.SUCCEEDED, RunSummary(epochs=1))
    return attempt.run.id


def visit(browser: Browser, address: str, drawn: str = DRAWN) -> tuple[float, Page]:
    """Seconds until a browser that was never there has drawn them, and its page."""
    page = browser.new_context(viewport={"width": 1440, "height": 1000}).new_page()
    start = time.perf_counter()
    page.goto(address, wait_until="commit")
    page.wait_for_function(drawn, timeout=120_000)
    return time.perf_counter() - start, page


def dragged(page: Page) -> list[float]:
    """Milliseconds of the redrawings while the timeline is moved to and fro."""
    x, y = page.evaluate(CENTRE)
    page.mouse.move(x, y)
    page.mouse.down()
    times = []
    for step in range(DRAGS):
        page.mouse.move(x + (8 * step if step % 40 < 20 else -8 * step) % 300, y)
        page.wait_for_timeout(16)
        times.append(page.evaluate(LAST))
    page.mouse.up()
    return times


def told(times: list[float]) -> str:
    return f"{statistics.median(times):.1f}, {max(times):.1f}"


def main() -> None:
    page = evidence("pages", "bench_timeline")
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--actions", type=int, nargs="+", default=[500_000, 1_000_000])
    page.table("timeline", HEAD, map(row, asked.parse_args().actions))


def row(num_actions: int) -> list[str]:
    for name in [name for name in os.environ if name.startswith("STAGEFLOW_")]:
        del os.environ[name]
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        os.environ["STAGEFLOW_HOME"] = str(Path(folder) / "home")
        backend = seed.fresh()
        run_id = fill(backend, num_actions)
        backend.close()
        browser = playwright.chromium.launch(
            executable_path=chromium, args=["--no-sandbox", "--disable-gpu"]
        )
        with dashboard() as (url, process, _):
            visit(browser, f"{url}/plan", PLAN)[1].context.close()  # the server is awake
            visits = []
            for number in range(VISITS):
                took, page = visit(browser, f"{url}/run?id={run_id}")
                visits.append(f"{took:.2f}")
                if number < VISITS - 1:
                    page.context.close()
            moves = [told(dragged(page))]
            page.keyboard.press("0")
            page.wait_for_timeout(500)
            moves.append(told(dragged(page)))
            memory = f"{process.memory_info().rss / 2**20:.0f}"
        browser.close()
    return [f"{num_actions:,}", visits[0], ", ".join(visits[1:]), *moves, memory]


if __name__ == "__main__":
    main()

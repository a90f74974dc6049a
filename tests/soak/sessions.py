"""Many people at once: sessions that draw pages again, a long history, runs that report.

    PYTHONPATH=. python tests/soak/sessions.py [--sessions 100] [--history 100000] [--runs 20]
        [--minutes 10] [--sampled]

The sessions speak Streamlit's own protocol: half look at runs that report, the others at the list,
Start, Nodes, Compare and Plan. Each draws its whole page again every 10 s, as a click does, and
whatever the page refreshes by itself as often as it says. The runs report from a process of their
own, a loss and a line of log each, ten times a second.
"""

import argparse
import itertools
import os
import random
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil

from backend.bootstrap import connect
from backend.runs.events import Metrics
from tests.app import seed
from tests.benchmarks.bench_history import fill
from tests.benchmarks.bench_pages import dashboard
from tests.benchmarks.bench_sessions import Session

HERTZ = 10.0
CLICK = 10.0  # seconds between two whole draws of a session
SETTLE = 30.0  # seconds until every session stands
PAGES = ("runs", "start", "nodes", "compare", "plan")
BAR_SECONDS, BAR_BYTES = 0.25, 500e6


def prepare(num_history: int, num_runs: int) -> list[int]:
    """A history, and runs that wait for whoever reports; their ids."""
    backend = seed.fresh()
    fill(backend, num_history, 2)
    found = seed.everything(backend)
    plan = backend.plans.get(found.plan)
    ids = [seed.submit(backend, found.definition, plan).id for _ in range(num_runs)]
    backend.close()
    return ids


def report(ids: list[int]) -> None:
    """Be the agents of these runs until standard input ends; print how often each reported."""
    backend = connect()
    attempts = [seed.claim(backend, backend.runs.get(id_)) for id_ in ids]
    print("ready", flush=True)
    ended = threading.Event()
    threading.Thread(target=lambda: (sys.stdin.read(), ended.set()), daemon=True).start()
    start, step = time.perf_counter(), 0
    while not ended.is_set():
        now = time.time()
        for attempt in attempts:
            attempt.metrics(Metrics("loss", (step,), (2.0 / (step + 1),), (now,), step // 100))
            attempt.logs([(0, now, f"update {step}")])
        step += 1
        time.sleep(max(0.0, start + step / HERTZ - time.perf_counter()))
    print(f"each of {len(ids)} runs reported {step / (time.perf_counter() - start):.1f} times/s")
    backend.close()


@contextmanager
def reporting(ids: list[int]) -> Iterator[None]:
    words = [sys.executable, __file__, "--report", *map(str, ids)]
    agents = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert agents.stdin is not None
    assert agents.stdout is not None
    assert agents.stdout.readline() == "ready\n"
    try:
        yield
    finally:
        agents.stdin.close()
        print(agents.stdout.read().strip())
        agents.wait(timeout=60)


def visitors(url: str, number: int, ids: list[int]) -> list[Session]:
    pages = itertools.cycle(PAGES)
    found = []
    for place in range(number):
        if place % 2:
            found.append(Session(url, f"id={ids[place % len(ids)]}"))
        else:
            found.append(Session(url, "", next(pages)))
        time.sleep(0.05)  # a hundred people do not come in one moment
    return found


def click(sessions: list[Session], ended: threading.Event) -> None:
    """Each session draws its page every `CLICK` seconds, all of them spread over that time."""
    order = random.Random(0).sample(sessions, len(sessions))
    for session in itertools.cycle(order):
        if ended.wait(CLICK / len(order)):
            return
        session.draw()


def watch(process: psutil.Process, minutes: float) -> list[float]:
    """The bytes that the web process holds, every 2 s."""
    held, end = [], time.monotonic() + 60 * minutes
    while time.monotonic() < end:
        held.append(float(process.memory_info().rss))
        time.sleep(2)
    return held


def measure(given: argparse.Namespace) -> bool:
    """Whether the bars hold."""
    ids = prepare(given.history, given.runs)
    ended = threading.Event()
    module = "tests.soak.sampled" if given.sampled else "app.asgi"
    with dashboard(module) as (url, process, _), reporting(ids):
        idle = process.memory_info().rss
        sessions = visitors(url, given.sessions, ids)
        clicking = threading.Thread(target=click, args=(sessions, ended))
        clicking.start()
        time.sleep(SETTLE)
        for session in sessions:
            session.seconds.clear()
        before = process.cpu_times()
        held = watch(process, given.minutes)
        after = process.cpu_times()
        ended.set()
        clicking.join()
        taken = sorted(second for session in sessions for second in session.seconds)
    used = after.user + after.system - before.user - before.system
    return tell(taken, held, idle, used / (60 * given.minutes), len(sessions))


def tell(taken: list[float], held: list[float], idle: float, cores: float, number: int) -> bool:
    p95 = taken[int(0.95 * len(taken))]
    fifth = max(1, len(held) // 5)
    early, late = statistics.mean(held[:fifth]), statistics.mean(held[-fifth:])
    print(
        f"{number} sessions: {len(taken)} draws, median {1000 * statistics.median(taken):.0f} ms, "
        f"p95 {1000 * p95:.0f} ms (bar {1000 * BAR_SECONDS:.0f}), most {1000 * taken[-1]:.0f} ms; "
        f"{cores:.2f} cores"
    )
    print(
        f"web process: {idle / 1e6:.0f} MB at rest, {max(held) / 1e6:.0f} MB at most "
        f"(bar {BAR_BYTES / 1e6:.0f}); first fifth {early / 1e6:.0f} MB, last {late / 1e6:.0f} MB"
    )
    return p95 <= BAR_SECONDS and max(held) <= BAR_BYTES


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sessions", type=int, default=100)
    parser.add_argument("--history", type=int, default=100_000)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--sampled", action="store_true", help="say where the time went")
    parser.add_argument("--report", nargs="+", type=int, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.report:
        report(given.report)
        return
    for name in [name for name in os.environ if name.startswith("STAGEFLOW_")]:
        del os.environ[name]
    os.environ["STAGEFLOW_LEASE"] = "3600"
    with tempfile.TemporaryDirectory(prefix="stageflow-soak-") as folder:
        os.environ["STAGEFLOW_HOME"] = str(Path(folder) / "home")
        holds = measure(given)
    sys.exit(0 if holds else 1)


if __name__ == "__main__":
    main()

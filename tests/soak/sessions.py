"""Many people at once: sessions that draw pages again, a long history, runs that report.

    PYTHONPATH=. python tests/soak/sessions.py [--sessions 100] [--history 100000] [--runs 20]
        [--minutes 10] [--processes 1] [--database postgresql] [--sampled]

The sessions speak Streamlit's own protocol: half look at runs that report, the others at the list,
Start, Nodes, Compare and Plan. Each draws its whole page again every 10 s, as a click does, and
whatever the page refreshes by itself as often as it says. The runs report from a process of their
own, a loss and a line of log each, ten times a second. With several processes of the dashboard each
has its share of the sessions, as behind the proxy of docker/.
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
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import psutil

from backend.bootstrap import connect
from backend.runs.events import Metrics
from tests.app import seed
from tests.benchmarks.bench_history import fill
from tests.benchmarks.bench_pages import dashboard
from tests.benchmarks.bench_sessions import Session
from tests.soak.database_server import server_of

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


def visitors(urls: Sequence[str], number: int, ids: list[int]) -> dict[str, list[Session]]:
    """The sessions by their page."""
    pages = itertools.cycle(PAGES)
    found: dict[str, list[Session]] = {"run": [], **{page: [] for page in PAGES}}
    for place in range(number):
        url = urls[place // 2 % len(urls)]
        if place % 2:
            found["run"].append(Session(url, f"id={ids[place % len(ids)]}"))
        else:
            page = next(pages)
            found[page].append(Session(url, "", page))
        time.sleep(0.05)  # a hundred people do not come in one moment
    return found


def click(sessions: list[Session], ended: threading.Event) -> None:
    """Each session draws its page every `CLICK` seconds, all of them spread over that time."""
    order = random.Random(0).sample(sessions, len(sessions))
    for session in itertools.cycle(order):
        if ended.wait(CLICK / len(order)):
            return
        session.draw()


def watch(processes: Sequence[psutil.Process], minutes: float) -> list[float]:
    """The bytes that the largest web process holds, every 2 s."""
    held, end = [], time.monotonic() + 60 * minutes
    while time.monotonic() < end:
        held.append(float(max(process.memory_info().rss for process in processes)))
        time.sleep(2)
    return held


def used(processes: Sequence[psutil.Process]) -> float:
    """Seconds of processor time so far."""
    return sum(sum(process.cpu_times()[:2]) for process in processes)


def measure(given: argparse.Namespace) -> bool:
    """Whether the bars hold."""
    ids = prepare(given.history, given.runs)
    ended = threading.Event()
    module = "tests.soak.sampled" if given.sampled else "app.asgi"
    with ExitStack() as stack:
        servers = [stack.enter_context(dashboard(module)) for _ in range(given.processes)]
        stack.enter_context(reporting(ids))
        processes = [process for _, process, _ in servers]
        idle = max(process.memory_info().rss for process in processes)
        there = visitors([url for url, *_ in servers], given.sessions, ids)
        sessions = list(itertools.chain(*there.values()))
        clicking = threading.Thread(target=click, args=(sessions, ended))
        clicking.start()
        time.sleep(SETTLE)
        for session in sessions:
            session.seconds.clear()
        before = used(processes)
        held = watch(processes, given.minutes)
        cores = (used(processes) - before) / (60 * given.minutes)
        ended.set()
        clicking.join()
        taken = {page: _taken(ones) for page, ones in there.items()}
    print(
        f"{given.database}: {len(sessions)} sessions on {len(processes)} processes, "
        f"{cores:.2f} cores"
    )
    return tell(taken, held, idle)


def _taken(sessions: Sequence[Session]) -> list[float]:
    return sorted(second for session in sessions for second in session.seconds)


def tell(by_page: Mapping[str, list[float]], held: list[float], idle: float) -> bool:
    taken = sorted(itertools.chain(*by_page.values()))
    for page, seconds in {"all": taken, **by_page}.items():
        if seconds:
            print(
                f"{page:8} {len(seconds):5} draws, median {1000 * statistics.median(seconds):5.0f} "
                f"ms, p95 {1000 * _p95(seconds):5.0f} ms, most {1000 * seconds[-1]:5.0f} ms"
            )
    fifth = max(1, len(held) // 5)
    means = [statistics.mean(held[n * fifth : (n + 1) * fifth]) / 1e6 for n in range(5)]
    print(
        f"web process: {idle / 1e6:.0f} MB at rest, {max(held) / 1e6:.0f} MB at most "
        f"(bar {BAR_BYTES / 1e6:.0f}); by fifths of the time {', '.join(f'{m:.0f}' for m in means)}"
    )
    return _p95(taken) <= BAR_SECONDS and max(held) <= BAR_BYTES


def _p95(seconds: Sequence[float]) -> float:
    return seconds[int(0.95 * len(seconds))]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sessions", type=int, default=100)
    parser.add_argument("--history", type=int, default=100_000)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--processes", type=int, default=1, help="of the dashboard")
    parser.add_argument("--database", choices=("sqlite", "postgresql"), default="sqlite")
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
        home = Path(folder) / "home"
        home.mkdir()
        os.environ["STAGEFLOW_HOME"] = str(home)
        with server_of(given.database, home, None) as server:
            os.environ["STAGEFLOW_DATABASE_URL"] = server.url
            holds = measure(given)
    sys.exit(0 if holds else 1)


if __name__ == "__main__":
    main()

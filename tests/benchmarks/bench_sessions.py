"""What open pages cost the server: sessions on a live run, each drawn again every 2.5 s.

    python -m tests.benchmarks.bench_sessions [--sessions 20] [--seconds 40]

The sessions speak Streamlit's own protocol from one process and ask again as often as a browser
would; a training writes an epoch of 24 losses, its log and its timelines every 3 s meanwhile.
"""

import argparse
import os
import tempfile
import threading
import time
from pathlib import Path

from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection, connect

from backend.bootstrap import Backend
from backend.runs.plans import StoredPlan
from backend.services.runs.attempt import Attempt
from tests.app import seed
from tests.benchmarks.bench_pages import dashboard

EPOCH = 3.0  # seconds
SETTLE = 15.0  # seconds until every session stands


class Session:
    """A visitor of one page; counts how often it was drawn and the bytes that came, and keeps
    the seconds from each question to its answer."""

    def __init__(self, url: str, query: str, page: str = "run") -> None:
        self.drawn, self.bytes = 0, 0
        self.seconds: list[float] = []
        self._asked = 0.0
        self._name, self._query, self._page = page, query, ""
        self._fragments: dict[str, float] = {}
        self._ticking = False
        address = url.replace("http", "ws") + "/_stcore/stream"
        self._socket: ClientConnection = connect(
            address,
            subprotocols=["streamlit"],
            max_size=None,
            origin=url,
            ping_interval=None,  # a server that is late is measured, not hung up on
            legacy=True,
        )
        self._ask()
        threading.Thread(target=self._listen, daemon=True).start()

    def draw(self) -> None:
        """Ask for the whole page again, as a click does; its parts are then made anew."""
        self._fragments.clear()
        self._ask()

    def _ask(self, fragment: str = "") -> None:
        self._asked = self._asked or time.perf_counter()
        message = BackMsg()
        message.rerun_script.query_string = self._query
        message.rerun_script.page_script_hash = self._page
        if not self._page:
            message.rerun_script.page_name = self._name
        if fragment:
            message.rerun_script.fragment_id = fragment
            message.rerun_script.is_auto_rerun = True
        self._socket.send(message.SerializeToString())

    def _listen(self) -> None:
        try:
            for data in self._socket:
                self.bytes += len(data)
                self._hear(ForwardMsg.FromString(data))
        except ConnectionClosed:
            return

    def _hear(self, message: ForwardMsg) -> None:
        match message.WhichOneof("type"):
            case "navigation":
                self._page = message.navigation.page_script_hash
            case "auto_rerun":
                self._fragments[message.auto_rerun.fragment_id] = message.auto_rerun.interval
                if not self._ticking:
                    self._ticking = True
                    threading.Thread(target=self._tick, daemon=True).start()
            case "script_finished":
                self.drawn += 1
                if self._asked:
                    self.seconds.append(time.perf_counter() - self._asked)
                    self._asked = 0.0

    def _tick(self) -> None:
        """Every part that refreshes itself, as often as the page says."""
        while True:
            time.sleep(min(self._fragments.values(), default=2.0))
            try:
                for fragment in list(self._fragments):
                    self._ask(fragment)
            except ConnectionClosed:
                return


def train(backend: Backend, attempt: Attempt, plan: StoredPlan, stop: threading.Event) -> None:
    epoch = 2
    while not stop.wait(EPOCH):
        seed.train_epoch(backend, attempt, plan, epoch)
        epoch += 1


def measure(num_sessions: int, seconds: float) -> None:
    backend = seed.fresh()
    definition = backend.definitions.add_zoo("vgg_digits")
    _, profile = seed.profile_run(backend, definition.id)
    plan = seed.plan_for(backend, profile)
    attempt = seed.running(backend, definition.id, plan)
    stop = threading.Event()
    writer = threading.Thread(target=train, args=(backend, attempt, plan, stop))
    with dashboard() as (url, process, _):
        idle = process.memory_info().rss
        sessions = [Session(url, f"id={attempt.run.id}") for _ in range(num_sessions)]
        writer.start()
        time.sleep(SETTLE)
        before, drawn = process.cpu_times(), sum(one.drawn for one in sessions)
        received, start = sum(one.bytes for one in sessions), time.perf_counter()
        time.sleep(seconds)
        wall, after = time.perf_counter() - start, process.cpu_times()
        used = after.user + after.system - before.user - before.system
        refreshes = sum(one.drawn for one in sessions) - drawn
        received = sum(one.bytes for one in sessions) - received
        grown = (process.memory_info().rss - idle) / 2**20
        stop.set()
        writer.join()
    backend.close()
    each = max(refreshes, 1)
    print(
        f"{num_sessions} sessions: {refreshes / wall:.1f} refreshes/s, {used / wall:.2f} cores, "
        f"{1000 * used / each:.0f} ms of CPU and {received / each / 1024:.0f} KiB each, "
        f"{grown / num_sessions:.1f} MiB of memory a session"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sessions", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=40.0)
    given = parser.parse_args()
    for name in [name for name in os.environ if name.startswith("STAGEFLOW_")]:
        del os.environ[name]
    os.environ["STAGEFLOW_LEASE"] = "3600"
    with tempfile.TemporaryDirectory() as folder:
        os.environ["STAGEFLOW_HOME"] = str(Path(folder) / "home")
        measure(given.sessions, given.seconds)


if __name__ == "__main__":
    main()

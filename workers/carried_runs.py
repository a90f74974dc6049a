"""What a node agent carries at the moment, each in a thread of its own."""

import logging
import threading
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass

Work = Callable[[], None]
log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Carried:
    thread: threading.Thread
    devices: frozenset[int]


class CarriedRuns:
    """Runs and shares of runs, by the devices that they hold, or a measurement of links, which has
    the machine to itself; `afterwards` is called at the end of each. Every call is made by one
    thread at a time, but for `join`."""

    def __init__(self, afterwards: Work) -> None:
        self._afterwards = afterwards
        self._runs: list[_Carried] = []
        self._measurement: threading.Thread | None = None
        self.has_carried = False

    @property
    def is_measuring(self) -> bool:
        return self._measurement is not None and self._measurement.is_alive()

    @property
    def is_idle(self) -> bool:
        return not self.is_measuring and not any(each.thread.is_alive() for each in self._runs)

    def carry(self, devices: Collection[int], work: Work) -> None:
        """Do the work once nothing here has these devices any more: processes of a share may take
        a moment longer than the run, which its leader ends."""
        self._runs = [each for each in self._runs if each.thread.is_alive()]
        before = [each.thread for each in self._runs if each.devices & set(devices)]

        def carried() -> None:
            for thread in before:
                thread.join()
            work()

        self._runs.append(_Carried(self._started(carried), frozenset(devices)))
        self.has_carried = True  # last: whoever sees it and finds nobody alive takes it for over

    def measure(self, work: Work) -> None:
        self._measurement = self._started(work)

    def join(self, seconds: float) -> None:
        """Wait until nothing is carried any more, at most so long."""
        deadline = time.monotonic() + seconds
        threads = [each.thread for each in self._runs]
        for thread in (*threads, *([self._measurement] if self._measurement else [])):
            thread.join(max(0.0, deadline - time.monotonic()))

    def _started(self, work: Work) -> threading.Thread:
        """Daemons: an agent that must end does not wait for them."""

        def logged() -> None:
            try:
                work()
            except Exception:  # its lease ends: the agent goes on with the others
                log.exception("a run was left")
            self._afterwards()

        thread = threading.Thread(target=logged, daemon=True)
        thread.start()
        return thread

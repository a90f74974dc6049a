"""Plans for many clusters, made in the background, so that the page stays alive meanwhile."""

from collections.abc import Sequence
from threading import Event, Semaphore, Thread

import streamlit as st
import structlog

from app.keys import BY_PROFILE
from app.variations import Axis, Point, Variation, variations
from backend.cluster.cluster import Cluster
from backend.errors import StageflowError
from backend.pipeline.schedules.catalog import schedule as schedule_named
from backend.prediction.propose import propose
from backend.profiles.profile import Profile

KEPT = 16
ONE_AT_A_TIME = Semaphore(1)
"""Planning is pure Python: several sweeps at once would only slow the pages."""

log = structlog.get_logger("app")


class Sweep:
    """The points of one question, in the order in which they come. `cancel` ends it early;
    what is there stays."""

    def __init__(
        self, profile: Profile, schedule: str, optimizer: str, wanted: Sequence[Variation]
    ) -> None:
        self._question = (profile, schedule, optimizer)
        self._wanted = tuple(wanted)
        self._points: list[Point] = []
        self._stop = Event()
        self._thread = Thread(target=self._run, name="what-if", daemon=True)
        self._thread.start()

    @property
    def total(self) -> int:
        return len(self._wanted)

    @property
    def done(self) -> int:
        return len(self._points)

    @property
    def is_running(self) -> bool:
        return self._thread.is_alive()

    @property
    def was_cancelled(self) -> bool:
        return self._stop.is_set() and self.done < self.total

    def cancel(self) -> None:
        """End after the point that is being planned."""
        self._stop.set()

    def wait(self, seconds: float) -> bool:
        """Whether it has ended within that time."""
        self._thread.join(seconds)
        return not self.is_running

    def along(self, axis: Axis) -> list[Point]:
        """The points so far of one curve, by value."""
        own = [point for point in list(self._points) if point.variation.axis is axis]
        return sorted(own, key=lambda point: point.variation.value)

    def _run(self) -> None:
        with ONE_AT_A_TIME:
            for variation in self._wanted:
                if self._stop.is_set():
                    return
                self._points.append(self._point(variation))

    def _point(self, variation: Variation) -> Point:
        profile, schedule, optimizer = self._question
        try:
            found = propose(profile, variation.cluster, schedule, variation.batch, optimizer)
        except StageflowError as fault:
            return Point(variation, None, str(fault))
        except Exception:
            log.exception("what-if failed", label=variation.label)
            return Point(variation, None, "Planning failed; the server's log says how.")
        return Point(variation, found[0])


@st.cache_resource(show_spinner=False, max_entries=KEPT, hash_funcs=BY_PROFILE)
def sweep_of(
    profile: Profile, cluster: Cluster, schedule: str, batch: int, optimizer: str, attempt: int
) -> Sweep:
    """The sweep of this question, started by the first who asks; another `attempt` starts it
    anew."""
    flushes = schedule_named(schedule).batched
    return Sweep(profile, schedule, optimizer, variations(cluster, batch, flushes=flushes))

"""The end of this agent: that it must stop, or for how long it may still work."""

import threading
import time


class Stop:
    """Set once the agent must stop. A *warning* comes before: whoever started the agent (a
    cluster's scheduler, a machine that is taken back) will end it in so many seconds. What goes
    on then goes on, nothing is begun, and who leads a run ends it with a last checkpoint.

    May be called by any thread and by signal handlers.
    """

    def __init__(self) -> None:
        self._now = threading.Event()
        self._end: float | None = None

    def set(self) -> None:
        """The agent must stop now."""
        self._now.set()

    def is_set(self) -> bool:
        return self._now.is_set()

    def wait(self, seconds: float) -> None:
        """Until it is set, or for so long; a warning does not count."""
        self._now.wait(seconds)

    def warn(self, seconds: float) -> None:
        """The agent will be ended in `seconds`; of several warnings the soonest end counts."""
        end = time.monotonic() + seconds
        self._end = end if self._end is None else min(self._end, end)

    @property
    def seconds_left(self) -> float | None:
        """Until the end that it was warned of, 0 from then on; None where nobody has warned."""
        return None if self._end is None else max(0.0, self._end - time.monotonic())

    @property
    def is_near(self) -> bool:
        """Set or warned: nothing new is begun."""
        return self.is_set() or self._end is not None

"""The end of this agent: that it must stop, or for how long it may still work."""

import os
import select
import time
import weakref


class Flag:
    """What `threading.Event` is, for signal handlers too. They run between two steps of the code
    that they interrupt, and an event takes a lock that this code may hold: it would wait for
    itself. A byte in a pipe, which nobody takes out, tells all who wait, and needs no lock.
    """

    def __init__(self) -> None:
        self._is_set = False
        self._end, self._told = os.pipe()
        for each in (self._end, self._told):
            weakref.finalize(self, os.close, each)

    def set(self) -> None:
        if not self._is_set:
            self._is_set = True
            os.write(self._told, b".")

    def is_set(self) -> bool:
        return self._is_set

    def wait(self, seconds: float | None = None) -> bool:
        """Until it is set, or for so long; whether it is set."""
        told = select.poll()
        told.register(self._end, select.POLLIN)
        told.poll(None if seconds is None else 1000 * seconds)
        return self._is_set


class Stop:
    """Set once the agent must stop. A *warning* comes before: whoever started the agent (a
    cluster's scheduler, a machine that is taken back) will end it in so many seconds. What goes
    on then goes on, nothing is begun, and who leads a run ends it with a last checkpoint.

    May be called by any thread and by signal handlers.
    """

    def __init__(self) -> None:
        self._now = Flag()
        self._end: float | None = None

    def set(self) -> None:
        """The agent must stop now."""
        self._now.set()

    def is_set(self) -> bool:
        return self._now.is_set()

    def wait(self, seconds: float | None = None) -> None:
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

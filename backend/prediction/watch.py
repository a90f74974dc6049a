"""Who follows a search, and may end it."""

from collections.abc import Callable
from dataclasses import dataclass

from backend.errors import StageflowError


class PlanningStopped(StageflowError):
    """Somebody ended a search before it had a plan."""

    advice = "Plan again, or ask for one planner and one schedule: that takes less time."


@dataclass(frozen=True, slots=True)
class Watch:
    """Who follows a search.

    progress  called with a planner's name, and how many of how many candidates are done
    stop      asked before every candidate; True ends the search with the best one so far
    """

    progress: Callable[[str, int, int], None] = lambda planner, done, total: None
    stop: Callable[[], bool] = lambda: False

    def check(self) -> None:
        """Raise `PlanningStopped` where it is to end."""
        if self.stop():
            raise PlanningStopped("planning was stopped before there was a plan")


UNWATCHED = Watch()

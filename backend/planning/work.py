"""How much a search may do: counted and not timed, so that a question has one answer anywhere."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import inf
from typing import Optional

from backend.errors import StageflowError


class WorkSpent(StageflowError):
    """A search came to its limit before it had anything."""

    advice = "Search longer, use fewer devices, or ask for one planner and one schedule."


@dataclass
class SearchWork:
    """About a millionth of a second of one core each (what a step costs is an estimate).

    most   the limit
    stop   asked meanwhile; raises where somebody ended the search
    whole  of which this is a part
    done   how much was done
    is_short   whether something was left out for the limit
    stopped    where, in words; "" where nobody said
    is_told    whether the whole is told what is left out
    """

    most: float = inf
    stop: Callable[[], None] = lambda: None
    whole: Optional["SearchWork"] = None
    done: float = 0.0
    is_short: bool = False
    stopped: str = ""
    is_told: bool = True

    @property
    def left(self) -> float:
        return max(0.0, self.most - self.done)

    @property
    def is_spent(self) -> bool:
        """Whether none is left; what is not done for that reason is left out."""
        if self.left <= 0:
            self.leave_out()
        return self.left <= 0

    @property
    def is_whole_spent(self) -> bool:
        """The same of the whole of which this is a part."""
        return (self.whole or self).is_spent

    def spend(self, amount: float) -> None:
        """Count `amount` before it is done. Raises `WorkSpent` where none was left."""
        self.stop()
        if self.is_spent:
            raise WorkSpent("planning reached its limit before it had a plan")
        self.count(amount)

    def spend_each(self, amounts: Sequence[float]) -> None:
        """Spend one amount after another."""
        self.stop()
        if (total := sum(amounts)) < self.left:
            self.count(total)
            return
        for amount in amounts:
            self.spend(amount)

    def count(self, amount: float) -> None:
        """The same of what is done in any case."""
        self.done += amount
        if self.whole:
            self.whole.count(amount)

    def leave_out(self, where: str = "") -> None:
        """Remember that something was, and where last."""
        self.is_short, self.stopped = True, where or self.stopped
        if self.whole and self.is_told:
            self.whole.leave_out(where)

    def part(self, share: float) -> "SearchWork":
        """That share of what is left, for a part of the search."""
        return SearchWork(share * self.left, self.stop, self)

    def untold(self) -> "SearchWork":
        """What is left, for something that nobody misses."""
        return SearchWork(self.left, self.stop, self, is_told=False)

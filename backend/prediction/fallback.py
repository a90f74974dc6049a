"""A plan for what is left of a cluster, as it is stored with a run."""

from collections.abc import Sequence
from dataclasses import dataclass

from backend.planning.plan import Plan


@dataclass(frozen=True, slots=True)
class Fallback:
    """By what a training goes on without `count` machines.

    lost    which ones, by number, where that matters; () = any: they are alike
    plan    for the devices that stay, numbered through; it makes the same updates, but that on
            fewer sites each is of fewer samples. None where there is none
    factor  its predicted samples/s over those of the plan with all machines
    fault   why there is none, for people
    sites   on how many it goes on, where the plan has some
    instead schedule in place of the order that the plan keeps; "" = it keeps none, or no plan
    """

    count: int
    lost: tuple[int, ...] = ()
    plan: Plan | None = None
    factor: float = 0.0
    fault: str = ""
    sites: int = 0
    instead: str = ""

    def is_for(self, lost: Sequence[int]) -> bool:
        """Whether it is for the loss of these."""
        return self.count == len(lost) and self.lost in ((), tuple(sorted(lost)))

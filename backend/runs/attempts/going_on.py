"""Whether a run that has lost nodes goes on by a smaller plan, and when it takes the larger one
again: pure functions of seconds and rates (the rule is ours)."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf


@dataclass(frozen=True, slots=True)
class Stake:
    """What is weighed.

    remaining  samples that the run still has to train on, from its newest checkpoint
    rate       samples/s by its own plan, on all its nodes
    factor     predicted samples/s by the smaller plan, over those
    restart    seconds from the start of an attempt to its first update
    """

    remaining: float
    rate: float
    factor: float
    restart: float

    @property
    def by_own(self) -> float:
        """Seconds for what remains by its own plan."""
        return self.remaining / self.rate if self.rate else inf

    @property
    def by_smaller(self) -> float:
        """Seconds for it by the smaller one."""
        return self.by_own / self.factor if self.factor else inf


def expected_wait(waited: float, outages: Sequence[float]) -> float:
    """Seconds that nodes which have been away for `waited` are expected to stay away: the mean of
    what was left of the past `outages` that were longer; `inf` where none was."""
    left = [outage - waited for outage in outages if outage > waited]
    return sum(left) / len(left) if left else inf


def goes_on(stake: Stake, wait: float) -> bool:
    """Whether to go on by the smaller plan, rather than to wait so many seconds for the nodes."""
    if not stake.factor:
        return False
    return wait == inf or stake.restart + stake.by_smaller < wait + stake.by_own


def returns(stake: Stake) -> bool:
    """Whether to end the smaller plan, now that the nodes are back: at a checkpoint."""
    return stake.restart + stake.by_own < stake.by_smaller

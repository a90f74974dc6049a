"""Shares: how many microbatches of a round each replica of a stage takes, and which ones.

Replicas on unequal devices take microbatches in proportion to their speed (AccPar: Song et al.,
HPCA 2020, its ratio of batches; whole microbatches and their order are ours). Shares (2, 1) are
rounds of three microbatches, of which replica 0 takes the first and the last. Equal shares are
round robin: microbatch k goes to replica k mod r.
"""

from collections.abc import Sequence
from functools import lru_cache
from heapq import heapify, heapreplace
from math import gcd, lcm

Shares = tuple[int, ...]
"""Microbatches of a round that each replica takes; () = one each."""
Pattern = tuple[int, ...]
"""The replica that takes each microbatch of a round."""


def shares(seconds: Sequence[float], num_microbatches: int) -> Shares:
    """The whole numbers n_i with the sum `num_microbatches` and the least max n_i c_i, where
    replica i takes c_i `seconds` for a microbatch. May give a replica nothing."""
    taken = _greedy(seconds, num_microbatches)
    return tuple(taken.count(replica) for replica in range(len(seconds)))


@lru_cache(maxsize=1024)
def pattern(of: Shares) -> Pattern:
    """The order in which the same rule gives each replica its share, the shortest that repeats:
    (4, 2) is 0 1 0, as (2, 1) is. Whole numbers alone decide, so that all ranks agree."""
    common, whole = gcd(*of), lcm(*of)
    return tuple(_greedy([whole // each for each in of], sum(of) // common))


def _greedy(seconds: Sequence[float], num_microbatches: int) -> list[int]:
    """Each microbatch goes to who would end first with it, of equal ones to the first. That is
    optimal: moving one from a replica to another ends no sooner."""
    ends = [(each, replica) for replica, each in enumerate(seconds)]
    heapify(ends)
    given, order = [0] * len(seconds), []
    for _ in range(num_microbatches):
        _, replica = ends[0]
        order.append(replica)
        given[replica] += 1
        heapreplace(ends, ((given[replica] + 1) * seconds[replica], replica))
    return order


def shares_text(of: Shares) -> str:
    """For people: "2:1"."""
    return ":".join(map(str, of))


@lru_cache(maxsize=64)
def windows(patterns: tuple[Pattern, ...], replicas: tuple[int, ...]) -> tuple[Shares, ...]:
    """Per pipeline rank the microbatches that each replica has in flight in 1F1B.

    Its share of what the devices from here on compute at once: ceil(sum of r_j n_i / P), which
    with equal shares is ceil(sum of r_j from here on / r_here). As shares do not fall evenly into
    any stretch of microbatches, it is as many more as keep ranks from waiting in a circle: w - 1
    microbatches of a replica never span less than w' - 1 of one behind it.
    """
    found: list[Shares] = []
    needed = 0
    for number in reversed(range(len(patterns))):
        own, devices = patterns[number], sum(replicas[number:])
        here = []
        for replica in range(replicas[number]):
            window = -(-devices * own.count(replica) // len(own))
            while _spans(own, replica, window)[0] < needed:
                window += 1
            here.append(window)
        needed = max(_spans(own, replica, window)[1] for replica, window in enumerate(here))
        found.insert(0, tuple(here))
    return tuple(found)


def _spans(own: Pattern, replica: int, window: int) -> tuple[int, int]:
    """Least and most microbatches from one of a replica to its (window - 1)-th next one."""
    places = [place for place, taker in enumerate(own) if taker == replica]
    rounds, more = divmod(window - 1, len(places))
    ends = places[more:] + [place + len(own) for place in places[:more]]
    spans = [end - place + rounds * len(own) for place, end in zip(places, ends, strict=True)]
    return min(spans), max(spans)

"""What an order is found for: seconds of stages and messages, and what ranks may hold."""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import inf

Sequences = tuple[str, ...]
"""Per rank the kinds of its computes, first to last: F, I and W, and f, i and w of the second
chunk of a V. The microbatches of each kind come in their order."""
NEEDS = {"I": "F", "W": "I", "i": "f", "w": "i"}
"""What a rank computes of a microbatch before it."""
Sends = tuple[int, str, float]
"""The rank that takes what a compute makes, for which kind of its own, and the seconds of the
message; 0 where it is the same rank."""


@dataclass(frozen=True)
class StageCosts:
    """A pipeline without replicas, one stage per rank or two that lie as a V; seconds per
    microbatch.

    forward, inputs, weights   of a forward and of the halves of a backward, per stage
    onward, back               of the messages over the cut behind each stage, there and back
    most_held                  forwards that each rank may hold whose weights' half is to come
    """

    forward: tuple[float, ...]
    inputs: tuple[float, ...]
    weights: tuple[float, ...]
    onward: tuple[float, ...]
    back: tuple[float, ...]
    most_held: tuple[int, ...]

    @property
    def size(self) -> int:
        """The number of ranks."""
        return len(self.most_held)

    @cached_property
    def kinds(self) -> str:
        """Those of a rank's computes."""
        return "FIW" if len(self.forward) == self.size else "FIWfiw"

    def stage(self, rank: int, kind: str) -> int:
        """That of which a rank runs computes of `kind`."""
        return rank if kind.isupper() else 2 * self.size - 1 - rank

    @cached_property
    def seconds(self) -> tuple[dict[str, float], ...]:
        """Per rank those of one compute of each kind."""
        each = {"F": self.forward, "I": self.inputs, "W": self.weights}
        return tuple(
            {kind: each[kind.upper()][self.stage(rank, kind)] for kind in self.kinds}
            for rank in range(self.size)
        )

    @cached_property
    def sends(self) -> tuple[dict[str, Sends], ...]:
        """Per rank where what it computes goes, by kind; what stays there is left out."""
        last, whole = self.size - 1, self.kinds == "FIW"
        found: list[dict[str, Sends]] = [{} for _ in range(self.size)]
        for rank, own in enumerate(found):
            if rank < last:
                own["F"] = rank + 1, "F", self.onward[rank]
            if rank:
                own["I"] = rank - 1, "I", self.back[rank - 1]
        if whole:
            found[last]["F"] = last, "I", 0.0
            return tuple(found)
        found[last]["F"], found[last]["i"], found[0]["f"] = (
            (last, "f", 0.0),
            (last, "I", 0.0),
            (0, "i", 0.0),
        )
        for rank, own in enumerate(found):
            stage = self.stage(rank, "f")
            if rank:
                own["f"] = rank - 1, "f", self.onward[stage]
            if rank < last:
                own["i"] = rank + 1, "i", self.back[stage - 1]
        return tuple(found)

    def has_room(self, rank: int, kind: str, held: int, held_first: int) -> bool:
        """Whether a rank may run another forward that holds so many, of the first chunk
        `held_first`: one that is full of a V's first chunks would never run a second one."""
        most = self.most_held[rank]
        return held < most and (kind == "f" or self.kinds == "FIW" or held_first < most - 1)


class StageClock:
    """The pipeline while computes are placed on it, one after another."""

    def __init__(self, costs: StageCosts) -> None:
        self.costs = costs
        self.free = [0.0] * costs.size
        self._down, self._up = [0.0] * costs.size, [0.0] * costs.size
        self.done = [dict.fromkeys(costs.kinds, 0) for _ in self.free]
        self._arrived: list[dict[str, list[float]]] = [
            {kind: [] for kind in costs.kinds if kind not in "Ww"} for _ in self.free
        ]
        del self._arrived[0]["F"]

    def ready(self, rank: int, kind: str) -> float:
        """When what the next compute of `kind` needs is there; infinite where it is not known."""
        turn = self.done[rank][kind]
        there = self._arrived[rank].get(kind)
        if there is not None:
            return there[turn] if turn < len(there) else inf
        return 0.0 if kind == "F" or turn < self.done[rank][NEEDS[kind]] else inf

    def place(self, rank: int, kind: str, ready: float) -> None:
        """Run the next compute of `kind`, whose needs are there when it is `ready`, and send what
        it makes."""
        end = max(self.free[rank], ready) + self.costs.seconds[rank][kind]
        self.free[rank] = end
        self.done[rank][kind] += 1
        if sent := self.costs.sends[rank].get(kind):
            to, taken, seconds = sent
            if to != rank:
                link = self._down if to > rank else self._up
                end = link[rank] = max(end, link[rank]) + seconds
            self._arrived[to][taken].append(end)

    def held(self, rank: int) -> tuple[int, int]:
        """Forwards of a rank whose weights' half is to come, and those of its first chunk."""
        done = self.done[rank]
        first = done["F"] - done["W"]
        return first + done.get("f", 0) - done.get("w", 0), first


def finish(costs: StageCosts, found: Sequence[str]) -> float:
    """Seconds until the last rank has ended; infinite where the ranks wait for ever."""
    clock, at = StageClock(costs), [0] * costs.size
    waiting = deque(range(costs.size))
    while waiting:
        rank = waiting.popleft()
        begun = at[rank]
        while at[rank] < len(found[rank]):
            kind = found[rank][at[rank]]
            if (ready := clock.ready(rank, kind)) == inf:
                break
            clock.place(rank, kind, ready)
            at[rank] += 1
        if at[rank] > begun:
            waiting.extend(each for each in (rank - 1, rank + 1) if 0 <= each < costs.size)
    ended = all(place == len(own) for place, own in zip(at, found, strict=True))
    return max(clock.free) if ended else inf

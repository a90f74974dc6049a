"""What an order is found for: seconds of stages and messages, and what stages may hold."""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from math import inf

Sequences = tuple[str, ...]
"""Per stage the kinds of its computes, first to last: F, I and W. The microbatches of each kind
come in their order."""


@dataclass(frozen=True, slots=True)
class StageCosts:
    """A straight pipeline, one stage per rank; seconds per microbatch.

    forward, inputs, weights   of a forward and of the halves of a backward, per stage
    onward, back               of the messages over the cut behind each stage, there and back
    most_held                  forwards that each stage may hold whose weights' half is to come
    """

    forward: tuple[float, ...]
    inputs: tuple[float, ...]
    weights: tuple[float, ...]
    onward: tuple[float, ...]
    back: tuple[float, ...]
    most_held: tuple[int, ...]

    @property
    def size(self) -> int:
        """The number of stages."""
        return len(self.forward)

    def seconds(self, stage: int, kind: str) -> float:
        """Those of one compute."""
        return {"F": self.forward, "I": self.inputs, "W": self.weights}[kind][stage]


class StageClock:
    """The pipeline while computes are placed on it, one after another."""

    def __init__(self, costs: StageCosts) -> None:
        self.costs = costs
        self.free = [0.0] * costs.size
        self._onward, self._back = [0.0] * costs.size, [0.0] * costs.size
        self.done = [{"F": 0, "I": 0, "W": 0} for _ in self.free]
        self.arrived: list[dict[str, list[float]]] = [{"F": [], "I": []} for _ in self.free]

    def ready(self, stage: int, kind: str) -> float:
        """When what the next compute of `kind` needs is there; infinite where it is not known."""
        turn, done = self.done[stage][kind], self.done[stage]
        if kind == "W":
            return 0.0 if turn < done["I"] else inf
        if kind == "F" and stage == 0:
            return 0.0
        there = self.arrived[stage][kind]
        return there[turn] if turn < len(there) else inf

    def place(self, stage: int, kind: str) -> None:
        """Run the next compute of `kind`, whose needs are known, and send what it makes."""
        end = max(self.free[stage], self.ready(stage, kind)) + self.costs.seconds(stage, kind)
        self.free[stage] = end
        self.done[stage][kind] += 1
        if kind == "F" and stage == self.costs.size - 1:
            self.arrived[stage]["I"].append(end)
        elif kind == "F":
            self._onward[stage] = max(end, self._onward[stage]) + self.costs.onward[stage]
            self.arrived[stage + 1]["F"].append(self._onward[stage])
        elif kind == "I" and stage:
            self._back[stage] = max(end, self._back[stage]) + self.costs.back[stage - 1]
            self.arrived[stage - 1]["I"].append(self._back[stage])

    def held(self, stage: int) -> int:
        """Forwards of a stage whose weights' half is to come."""
        return self.done[stage]["F"] - self.done[stage]["W"]


def finish(costs: StageCosts, found: Sequence[str]) -> float:
    """Seconds until the last stage has ended; infinite where the stages wait for ever."""
    clock, at = StageClock(costs), [0] * costs.size
    waiting = deque(range(costs.size))
    while waiting:
        stage = waiting.popleft()
        begun = at[stage]
        while at[stage] < len(found[stage]):
            if clock.ready(stage, found[stage][at[stage]]) == inf:
                break
            clock.place(stage, found[stage][at[stage]])
            at[stage] += 1
        if at[stage] > begun:
            waiting.extend(each for each in (stage - 1, stage + 1) if 0 <= each < costs.size)
    ended = all(place == len(own) for place, own in zip(at, found, strict=True))
    return max(clock.free) if ended else inf

"""All orders at once, compute by compute, without those that another one beats.

Two ways to have placed the same computes differ in when stages are free and messages arrive. One
that is later nowhere leads to no later end, so the other is dropped. What is left is every order
worth a look, where it fits into the width of the search; of more the most promising.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Self, TypeVar

from backend.pipeline.synthesis.costs import Sequences, StageCosts

Times = tuple[float, ...]
T = TypeVar("T")
BRANCHES = 3
"""Kinds of computes that a stage may place next, at most."""


@dataclass(frozen=True, slots=True)
class _State:
    """Computes that are placed. `done`: per stage those of F, I and W; `free`: when a stage has
    ended them; `onward`, `back`: when the link behind or in front of it has sent the last message;
    `inputs`, `gradients`: when the messages arrive that a stage has not used."""

    done: tuple[tuple[int, int, int], ...]
    free: Times
    onward: Times
    back: Times
    inputs: tuple[Times, ...]
    gradients: tuple[Times, ...]
    order: Sequences

    @classmethod
    def first(cls, size: int) -> Self:
        zeros, nothing = (0.0,) * size, ((),) * size
        return cls(((0, 0, 0),) * size, zeros, zeros, zeros, nothing, nothing, ("",) * size)

    @property
    def times(self) -> Times:
        """All of them: as many in all states with the same `done`."""
        waiting = (time for arrived in (*self.inputs, *self.gradients) for time in arrived)
        return (*self.free, *self.onward, *self.back, *waiting)

    def left(self, costs: StageCosts, stage: int, count: int) -> float:
        """Seconds of the computes that a stage has not placed."""
        f, i, w = self.done[stage]
        own = costs.forward[stage], costs.inputs[stage], costs.weights[stage]
        return (count - f) * own[0] + (count - i) * own[1] + (count - w) * own[2]

    def end(self, costs: StageCosts, count: int) -> tuple[float, float]:
        """Before which it does not end, and what its stages have taken together."""
        size = len(self.free)
        ends = (self.free[stage] + self.left(costs, stage, count) for stage in range(size))
        return max(ends), sum(self.free)

    def next(self, costs: StageCosts, count: int) -> Iterator["_State"]:
        """Those with one compute more."""
        last = len(self.free) - 1
        for stage, (f, i, w) in enumerate(self.done):
            if f < count and f - w < costs.most_held[stage] and (not stage or self.inputs[stage]):
                yield self._forward(costs, stage, stage == last)
            if i < f and (stage == last or self.gradients[stage]):
                yield self._inputs(costs, stage, stage == last)
            if w < i:
                yield self._placed(stage, "W", self.free[stage] + costs.weights[stage])

    def _forward(self, costs: StageCosts, stage: int, is_last: bool) -> "_State":
        inputs, onward = self.inputs, self.onward
        there, rest = (inputs[stage][0], inputs[stage][1:]) if stage else (0.0, ())
        end = max(self.free[stage], there) + costs.forward[stage]
        inputs = _with(inputs, stage, rest)
        if not is_last:
            sent = max(onward[stage], end) + costs.onward[stage]
            onward = _with(onward, stage, sent)
            inputs = _with(inputs, stage + 1, (*inputs[stage + 1], sent))
        return self._placed(stage, "F", end, inputs=inputs, onward=onward)

    def _inputs(self, costs: StageCosts, stage: int, is_last: bool) -> "_State":
        gradients, back = self.gradients, self.back
        there, rest = (0.0, ()) if is_last else (gradients[stage][0], gradients[stage][1:])
        end = max(self.free[stage], there) + costs.inputs[stage]
        gradients = _with(gradients, stage, rest)
        if stage:
            sent = max(back[stage], end) + costs.back[stage - 1]
            back = _with(back, stage, sent)
            gradients = _with(gradients, stage - 1, (*gradients[stage - 1], sent))
        return self._placed(stage, "I", end, gradients=gradients, back=back)

    def _placed(
        self,
        stage: int,
        kind: str,
        end: float,
        inputs: tuple[Times, ...] = (),
        onward: Times = (),
        gradients: tuple[Times, ...] = (),
        back: Times = (),
    ) -> "_State":
        f, i, w = self.done[stage]
        return _State(
            _with(self.done, stage, (f + (kind == "F"), i + (kind == "I"), w + (kind == "W"))),
            _with(self.free, stage, end),
            onward or self.onward,
            back or self.back,
            inputs or self.inputs,
            gradients or self.gradients,
            _with(self.order, stage, self.order[stage] + kind),
        )


def _with(of: tuple[T, ...], place: int, value: T) -> tuple[T, ...]:
    return (*of[:place], value, *of[place + 1 :])


def fastest(costs: StageCosts, count: int, below: float, work: int) -> Sequences | None:
    """The fastest order of `count` microbatches that ends before `below` seconds; None where none
    is found, within `work` computes. Where the width that these allow was enough, none is faster.
    """
    layers = 3 * count * costs.size
    width = work // (layers * costs.size * BRANCHES)
    states = [_State.first(costs.size)]
    for _ in range(layers):
        found: dict[object, list[tuple[Times, _State]]] = {}
        for state in states:
            for each in state.next(costs, count):
                if each.end(costs, count)[0] < below:
                    _keep(found.setdefault(each.done, []), each)
        states = [state for kept in found.values() for _, state in kept]
        states = sorted(states, key=lambda state: state.end(costs, count))[:width]
    return min(states, key=lambda state: max(state.free)).order if states else None


def _keep(kept: list[tuple[Times, _State]], state: _State) -> None:
    """Keep a state among those that placed the same, without those that are later."""
    times = state.times
    if not any(_is_no_later(other, times) for other, _ in kept):
        kept[:] = [one for one in kept if not _is_no_later(times, one[0])]
        kept.append((times, state))


def _is_no_later(one: Times, other: Times) -> bool:
    return all(a <= b for a, b in zip(one, other, strict=True))

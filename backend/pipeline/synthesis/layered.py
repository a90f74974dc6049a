"""All orders at once, compute by compute, without those that another one beats.

Two ways to have placed the same computes differ in when ranks are free and messages arrive. One
that is later nowhere leads to no later end, so the other is dropped. What is left is every order
worth a look, where it fits into the width of the search; of more the most promising.
"""

from collections.abc import Iterator
from itertools import chain
from operator import le
from typing import NamedTuple, Self, TypeVar

from backend.pipeline.synthesis.costs import Sequences, StageCosts

Times = tuple[float, ...]
T = TypeVar("T")


class _State(NamedTuple):
    """Computes that are placed. `done`: per rank those of each kind; `free`: when a rank has ended
    them, `ends`: before which it does not end what is left; `links`: when those to the next rank,
    and those to the one before, have sent the last message; `arrived`: per rank and kind when what
    it has not used arrives."""

    done: tuple[tuple[int, ...], ...]
    free: Times
    ends: Times
    links: tuple[Times, ...]
    arrived: tuple[tuple[Times, ...], ...]
    order: Sequences

    @classmethod
    def first(cls, costs: StageCosts, count: int) -> Self:
        zeros, each = (0.0,) * costs.size, costs.seconds
        ends = tuple(count * sum(seconds.values()) for seconds in each)
        done, nothing = (0,) * len(costs.kinds), ((),) * len(costs.kinds)
        arrived = (nothing,) * costs.size
        return cls((done,) * costs.size, zeros, ends, (zeros, zeros), arrived, ("",) * costs.size)

    @property
    def times(self) -> Times:
        """All of them: as many in all states with the same `done`."""
        waiting = chain.from_iterable(chain.from_iterable(self.arrived))
        return (*self.free, *self.links[0], *self.links[1], *waiting)

    @property
    def end(self) -> tuple[float, float]:
        """Before which it does not end, and what its ranks have taken together."""
        return max(self.ends), sum(self.free)

    def next(self, costs: StageCosts, count: int, below: float) -> Iterator["_State"]:
        """Those with one compute more that may end before `below`."""
        for rank, own in enumerate(self.done):
            for place in range(len(own)):
                may = own[place] < count and self._may(costs, rank, place)
                if may and self._end(rank, place) < below:  # the other ranks' ends stay
                    yield self._placed(costs, rank, place)

    def _may(self, costs: StageCosts, rank: int, place: int) -> bool:
        """Whether what the rank's next compute of a kind needs is there."""
        own, kind = self.done[rank], costs.kinds[place]
        if kind in "Ff":
            first = own[0] - own[2]
            held = first + own[3] - own[5] if len(own) > 3 else first
            if not costs.has_room(rank, kind, held, first):
                return False
        elif own[place] >= own[place - 1]:
            return False
        return kind in "Ww" or (kind == "F" and not rank) or bool(self.arrived[rank][place])

    def _end(self, rank: int, place: int) -> float:
        """Before which a rank does not end what is left, once it has computed one of a kind."""
        awaited, free, end = self.arrived[rank][place], self.free[rank], self.ends[rank]
        return end + awaited[0] - free if awaited and awaited[0] > free else end

    def _placed(self, costs: StageCosts, rank: int, place: int) -> "_State":
        kind, arrived, links = costs.kinds[place], self.arrived, self.links
        there, ends = self.free[rank], _with(self.ends, rank, self._end(rank, place))
        if awaited := arrived[rank][place]:
            there = max(there, awaited[0])
            arrived = _with(arrived, rank, _with(arrived[rank], place, awaited[1:]))
        end = there + costs.seconds[rank][kind]
        if sent := costs.sends[rank].get(kind):
            to, taken, seconds = sent
            comes = 0.0  # on the rank itself: it is never waited for
            if to != rank:
                way = int(to < rank)
                comes = max(links[way][rank], end) + seconds
                links = _with(links, way, _with(links[way], rank, comes))
            at = costs.kinds.index(taken)
            more = _with(arrived[to], at, (*arrived[to][at], comes))
            arrived = _with(arrived, to, more)
        own = self.done[rank]
        done = _with(self.done, rank, _with(own, place, own[place] + 1))
        free, order = _with(self.free, rank, end), _with(self.order, rank, self.order[rank] + kind)
        return _State(done, free, ends, links, arrived, order)


def _with(of: tuple[T, ...], place: int, value: T) -> tuple[T, ...]:
    return (*of[:place], value, *of[place + 1 :])


def fastest(costs: StageCosts, count: int, below: float, work: int) -> Sequences | None:
    """The fastest order of `count` microbatches that ends before `below` seconds; None where none
    is found, within `work` computes. Where the width that these allow was enough, none is faster.
    """
    layers = len(costs.kinds) * count * costs.size
    width = work // (layers * costs.size * len(costs.kinds))
    first = _State.first(costs, count)
    states = [first] if max(first.ends) < below else []
    for _ in range(layers):
        found: dict[object, list[tuple[Times, _State]]] = {}
        for state in states:
            for each in state.next(costs, count, below):
                _keep(found.setdefault(each.done, []), each)
        states = [state for kept in found.values() for _, state in kept]
        states = sorted(states, key=lambda state: state.end)[:width]
    return min(states, key=lambda state: max(state.free)).order if states else None


def _keep(kept: list[tuple[Times, _State]], state: _State) -> None:
    """Keep a state among those that placed the same, without those that are later."""
    times = state.times
    for other, _ in kept:
        if all(map(le, other, times)):
            return
    kept[:] = [one for one in kept if not all(map(le, times, one[0]))]
    kept.append((times, state))

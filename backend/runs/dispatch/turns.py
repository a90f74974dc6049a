"""Which queued runs may start now, and where the next one waits for its devices.

In the order of fairness every run takes what is free. The first that does not find its devices
reserves those that are expected to be free soonest. Runs after it start only where that does not
delay it: on other devices, or if they are expected to end before (EASY backfilling, Lifka 1995,
"The ANL/IBM SP scheduling system"). So a large run is not starved by small ones.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from math import inf

from backend.errors import InvalidInput
from backend.runs.dispatch.nodes import Node
from backend.runs.dispatch.placement import Share, settled, shares_on
from backend.runs.request.spec import RunSpec

Until = Mapping[str, Mapping[int, float]]
"""By node and number of a device that is held: seconds until it is expected to be free, `inf`
where nobody knows."""
Shares = tuple[Share, ...]
Taken = Mapping[str, Collection[int]]


@dataclass(frozen=True, slots=True)
class Queued:
    """A run that waits; `seconds` that it is expected to take, `inf` where nobody knows."""

    run_id: int
    spec: RunSpec
    seconds: float = inf


@dataclass(frozen=True, slots=True)
class Turn:
    """What is in store for a queued run: it starts on the `nodes`, of which the first leads, after
    so many seconds (0 = now; `inf` where nobody knows). Without nodes it waits `behind` the run
    that has reserved devices."""

    run_id: int
    nodes: tuple[str, ...] = ()
    seconds: float = inf
    behind: int | None = None


def turns(
    queue: Sequence[Queued], nodes: Sequence[Node], held: Until, asking: str = ""
) -> list[Turn]:
    """Of every run of the `queue`, in its order, whose nodes are all among the `nodes` that are
    alive; the others hold nobody up. A run that names no node takes the node that is `asking`
    before others."""
    line = _Line(nodes, held)
    places = sorted((node.name for node in nodes), key=lambda name: name != asking)
    found = []
    for run in queue:
        try:
            choices = dict.fromkeys(shares_on(place, run.spec, nodes) for place in places)
        except InvalidInput:
            continue
        if choices:
            found.append(line.turn(run, list(choices)))
    return found


class _Line:
    """The devices of the nodes that are alive, with what the runs so far hold of them."""

    def __init__(self, nodes: Sequence[Node], held: Until) -> None:
        self._devices = {node.name: node.devices for node in nodes}
        self._until = {node: dict(found) for node, found in held.items()}
        self._reserved_by: Turn | None = None
        self._reserved: Taken = {}

    def turn(self, run: Queued, choices: Sequence[Shares]) -> Turn:
        """Hold the devices that it gets by one of the choices, or reserve them."""
        now = self._now(run.seconds)
        for choice in choices:
            if placed := self._placed(run, choice, now):
                for share in placed:
                    there = self._until.setdefault(share.node, {})
                    there.update(dict.fromkeys(share.held, run.seconds))
                return Turn(run.run_id, _names(placed), 0.0)
        if self._reserved_by is not None:
            return Turn(run.run_id, behind=self._reserved_by.run_id)
        seconds, soonest = min(
            ((self._earliest(run, choice), choice) for choice in choices), key=lambda each: each[0]
        )
        self._reserved_by = Turn(run.run_id, _names(soonest), seconds)
        self._reserved = self._spared(run, soonest, seconds)
        return self._reserved_by

    def _now(self, ends_in: float) -> Taken:
        """What a run that ends after so many seconds cannot have."""
        taken = {node: set(found) for node, found in self._until.items()}
        by = self._reserved_by
        if by is not None and not ends_in <= by.seconds < inf:
            for node, found in self._reserved.items():
                taken.setdefault(node, set()).update(found)
        return taken

    def _placed(self, run: Queued, shares: Shares, taken: Taken) -> Shares | None:
        """All of the run's shares, on devices that are not taken; None where one has too few."""
        found = []
        for share in shares:
            devices, there = self._devices[share.node], taken.get(share.node, ())
            placed = settled(share, devices, there, run.spec.whole_nodes)
            if placed is None:
                return None
            found.append(placed)
        return tuple(found)

    def _earliest(self, run: Queued, shares: Shares) -> float:
        """Seconds until its devices are expected to be free."""
        times = {t for share in shares for t in self._until.get(share.node, {}).values()}
        fits = (t for t in sorted(times) if t < inf and self._placed(run, shares, self._after(t)))
        return next(fits, inf)

    def _after(self, seconds: float) -> dict[str, set[int]]:
        """What is still held after so many seconds."""
        return {
            node: {device for device, free in found.items() if free > seconds}
            for node, found in self._until.items()
        }

    def _spared(self, run: Queued, shares: Shares, seconds: float) -> Taken:
        """The devices that the run will take then. Where the time is known, rather those that are
        held until then than those that others can use meanwhile; otherwise those that are free
        already, or it would never find them free together."""
        taken = self._after(seconds)
        free = {
            (node, device): self._until.get(node, {}).get(device, 0.0)
            for node in _names(shares)
            for device in range(len(self._devices[node]))
            if device not in taken.get(node, ())
        }
        for node, device in sorted(free, key=lambda each: free[each], reverse=seconds == inf):
            there = taken.setdefault(node, set())
            there.add(device)
            if not self._placed(run, shares, taken):
                there.remove(device)
        placed = self._placed(run, shares, taken) or ()
        return {share.node: share.held for share in placed}


def _names(shares: Shares) -> tuple[str, ...]:
    return tuple(share.node for share in shares)

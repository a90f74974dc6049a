"""The links under a plan's ranks: who shares a link with whom."""

from collections.abc import Iterable
from dataclasses import dataclass

from backend.cluster.cluster import Cluster
from backend.pipeline.actions import AllReduce, Collective
from backend.pipeline.links import Path, Ring
from backend.prediction.durations import PlanDurations


@dataclass(frozen=True, slots=True)
class ClusterLinks:
    """The simulator's `Links` of a cluster: inside the innermost machine every pair of ranks has
    a link of its own; what leaves a machine goes over the one full-duplex link that all its
    ranks share, at each level that it climbs."""

    cluster: Cluster
    durations: PlanDurations

    def path(self, source: int, to: int) -> Path:
        """A link out of each machine that is left and one into each that is entered."""
        here, there = self.durations.device(source), self.durations.device(to)
        crossed = [n for n in self.cluster.sizes[1:-1] if here // n != there // n]
        out = (("out of", size, here // size) for size in crossed)
        into = (("into", size, there // size) for size in crossed)
        return (*out, *into) or ((source, to),)

    def latency(self, source: int, to: int) -> float:
        """Seconds on the way, in which shared links are free for the next transfer."""
        here, there = self.durations.device(source), self.durations.device(to)
        if here // self.cluster.sizes[1] == there // self.cluster.sizes[1]:
            return 0.0
        return self.cluster.link(here, there).latency

    def ring(self, action: Collective) -> Ring | None:
        if not isinstance(action, AllReduce) or not (used := self.on_ring(action.group)):
            return None
        links = {rank: tuple(each.items()) for rank, each in used.items()}
        return Ring(links, self.durations.pieces(action.stage, action.group))

    def on_ring(self, group: Iterable[int]) -> dict[int, dict[tuple[str, int, int], float]]:
        """By rank of a ring in the order of devices, the links out of and into machines on its way
        to the next one, each with the share of the time in which it is busy: the slowest link of
        the ring all of it. Ranks whose next one is in the same machine are left out."""
        members = sorted(group, key=self.durations.device)
        places = list(map(self.durations.device, members))
        pairs = list(zip(places, (*places[1:], places[0]), strict=True))
        slowest = min(self.cluster.link(*pair).bandwidth for pair in pairs)
        used: dict[int, dict[tuple[str, int, int], float]] = {}
        for rank, (here, there) in zip(members, pairs, strict=True):
            crossed = [n for n in self.cluster.sizes[1:-1] if here // n != there // n]
            if not crossed:
                continue
            share = slowest / self.cluster.link(here, there).bandwidth
            ways = (("out of", here), ("into", there))
            used[rank] = {(way, n, device // n): share for n in crossed for way, device in ways}
        return used

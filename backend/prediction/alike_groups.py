"""Groups of a plan's replicas that do the same at the same time: one is simulated for all."""

from collections.abc import Hashable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from math import lcm

import numpy as np

from backend.cluster.cluster import Cluster
from backend.pipeline.actions import Collective, Compute, Message
from backend.pipeline.kinds import Ints
from backend.pipeline.links import Path, Ring
from backend.pipeline.program import Program
from backend.pipeline.replica_groups import ALL, ReplicaGroups, possible_groups
from backend.pipeline.shape import Shape
from backend.pipeline.simulate import OWN_LINKS, simulate
from backend.pipeline.timeline import Timeline
from backend.planning.plan import Plan
from backend.prediction.durations import PlanDurations
from backend.prediction.shared_links import ClusterLinks
from backend.prediction.sharing import shared_cores

Ways = list[tuple[int, Ints, Ints]]
"""Of each pipeline rank the devices from which it sends to others, and those to which."""


@dataclass(frozen=True)
class AlikeGroups:
    """`groups` of the ranks of `shape`, which is a plan's; each does what the first one does.

    is_shared  whether ranks share links with others of their group
    """

    durations: PlanDurations
    shape: Shape
    groups: ReplicaGroups = ALL
    is_shared: bool = True

    @classmethod
    def of(cls, durations: PlanDurations, plan: Plan, shape: Shape) -> "AlikeGroups":
        """The most groups that are alike, else all ranks as one group.

        Devices are as fast; each group has machines of its own on every level; the machines of one
        are joined as those of the next one are; each ring goes on in the next group where it goes
        on there in the one after. A link into a machine over which a ring comes from another group
        gets no messages of the ring's own stage: which of two ranks of a stage comes first, where
        they come at once, would differ. Where nobody shares a link, groups are alike if all
        messages pass as many levels.
        """
        cluster = durations.cluster
        if len(cluster.speeds(plan.devices)) > 1 or cluster.levels[0].cores is not None:
            return cls(durations, shape)
        found = possible_groups(plan.schedule, shape)
        if not found:
            return cls(durations, shape)
        places = _Places(cluster, tuple(np.array(s.devices) for s in plan.partition.stages))
        alike = iter(found)
        if places.is_shared:
            most = places.most_groups
            alike = filter(places.are_alike, (each for each in found if each.count <= most))
        elif not places.has_one_level:
            alike = iter(())
        return cls(durations, shape, next(alike, ALL), places.is_shared)

    def timeline(self, program: Program) -> Timeline:
        """Of the `program` of one group, on the cluster's clock."""
        durations = self.durations
        if self.groups.count == 1:
            links = ClusterLinks(durations.cluster, durations)
            return simulate(program, durations, links, shared_cores(durations))
        one = OneGroup(durations, self.shape, self.groups)
        return simulate(program, one, one if self.is_shared else OWN_LINKS)


@dataclass(frozen=True)
class OneGroup:
    """The simulator's `Durations` and `Links` of the first group: as in the whole. Links into
    machines of the next group stand for those into its own, over which the last group comes."""

    durations: PlanDurations
    shape: Shape
    groups: ReplicaGroups

    @cached_property
    def ranks(self) -> tuple[int, ...]:
        return self.groups.ranks(self.shape)

    def compute(self, rank: int, action: Compute) -> float:
        return self.durations.compute(self.ranks[rank], action)

    def transfer(self, message: Message, source: int, to: int) -> float:
        return self.durations.transfer(message, self.ranks[source], self.ranks[to])

    def collective(self, action: Collective) -> float:
        return self.durations.collective(self._of_all(action))

    def path(self, source: int, to: int) -> Path:
        return self._links.path(self.ranks[source], self.ranks[to])

    def latency(self, source: int, to: int) -> float:
        return self._links.latency(self.ranks[source], self.ranks[to])

    def ring(self, action: Collective) -> Ring | None:
        ring = self._links.ring(self._of_all(action))
        if ring is None:
            return None
        own = {
            rank: tuple((self._own_links.get(link, link), share) for link, share in ring.links[one])
            for rank, one in enumerate(self.ranks)
            if one in ring.links
        }
        return Ring(own, ring.pieces)

    def _of_all(self, action: Collective) -> Collective:
        return replace(action, group=self.shape.group_of(action.stage))

    @cached_property
    def _links(self) -> ClusterLinks:
        return ClusterLinks(self.durations.cluster, self.durations)

    @cached_property
    def _own_links(self) -> dict[Hashable, Hashable]:
        """Each link into a machine of any group, and that of the first one in its place."""
        found: dict[Hashable, Hashable] = {}
        for stage in self.durations.partition.stages:
            devices = np.array(stage.devices)
            every = np.arange(len(devices))
            first = every - every % self.groups.modulus // self.groups.width * self.groups.width
            for size in self.durations.cluster.sizes[1:-1]:
                machines = zip(devices // size, devices[first] // size, strict=True)
                for machine, own in set(machines):
                    found["into", size, int(machine)] = "into", size, int(own)
        return found


@dataclass(frozen=True)
class _Places:
    """The devices of each stage's replicas."""

    cluster: Cluster
    stages: tuple[Ints, ...]

    @property
    def sizes(self) -> tuple[int, ...]:
        """Devices of a machine that links leave, the largest first."""
        return self.cluster.sizes[1:-1][::-1]

    @cached_property
    def messages(self) -> Ways:
        """Those of every channel, there and back."""
        found = []
        for number, (one, other) in enumerate(pairwise(self.stages)):
            turns = np.arange(lcm(len(one), len(other)))
            here, there = one[turns % len(one)], other[turns % len(other)]
            found += [(number, here, there), (number + 1, there, here)]
        return found

    @cached_property
    def following(self) -> tuple[Ints, ...]:
        """Of each stage the replica that follows each in its ring."""
        found = []
        for devices in self.stages:
            order = np.argsort(devices)
            after = np.empty_like(order)
            after[order] = np.roll(order, -1)
            found.append(after)
        return tuple(found)

    @cached_property
    def is_shared(self) -> bool:
        """Whether two use one link, or one has a latency in which it is free for others."""
        rings = zip(self.stages, self.following, strict=True)
        uses = [(here, there) for _, here, there in self.messages]
        uses += [(devices, devices[after]) for devices, after in rings]
        ends = [np.concatenate(each) for each in zip(*uses, strict=True)]
        for size in self.sizes:
            here, there = (each // size for each in ends)
            away = here != there
            if any(np.bincount(each[away]).max(initial=0) > 1 for each in (here, there)):
                return True
        return any(self.cluster.levels[level].latency for level in self._levels if level)

    @property
    def has_one_level(self) -> bool:
        return len(self._levels) <= 1

    @cached_property
    def _levels(self) -> set[int]:
        """The levels whose links join those that send messages to each other."""
        found: set[int] = set()
        for _, here, there in self.messages:
            climbed = sum((here // size != there // size).astype(np.int64) for size in self.sizes)
            found.update(np.unique(climbed).tolist())
        return found

    @cached_property
    def most_groups(self) -> int:
        """Each has a machine of its own for every stage."""
        return min(len(np.unique(each // self.sizes[0])) for each in self.stages)

    def are_alike(self, groups: ReplicaGroups) -> bool:
        """As `AlikeGroups.of` says, where links are shared."""
        remainders = [np.arange(len(each)) % groups.modulus for each in self.stages]
        group_of = [each // groups.width for each in remainders]
        shifted = [(each + groups.width) % groups.modulus for each in remainders]
        behind = [
            np.arange(len(each)) - each + other
            for each, other in zip(remainders, shifted, strict=True)
        ]
        every, group = np.concatenate(self.stages), np.concatenate(group_of)
        nexts = zip(self.stages, behind, strict=True)
        counterpart = np.concatenate([devices[after] for devices, after in nexts])
        return (
            all(
                _follows(group, every // size) and _follows(counterpart // size, every // size)
                for size in self.sizes
            )
            and all(
                np.array_equal(after[next_one], next_one[after])
                for after, next_one in zip(self.following, behind, strict=True)
            )
            and not any(self._meet(group_of))
        )

    def _meet(self, group_of: list[Ints]) -> Iterator[bool]:
        """Whether messages of a stage enter a machine that its ring enters from another group."""
        for size in self.sizes:
            for number, here, there in self.messages:
                entered = there[here // size != there // size] // size
                devices, after = self.stages[number], self.following[number]
                others = group_of[number] != group_of[number][after]
                yield bool(np.isin(devices[after][others] // size, entered).any())


def _follows(value: Ints, key: Ints) -> bool:
    """Whether equal keys have equal values."""
    found = np.zeros(int(key.max()) + 1, np.int64)
    found[key] = value
    return np.array_equal(found[key], value)

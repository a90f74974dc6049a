"""Seconds that the replicas of a stage exchange per update, for given types of its layers."""

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from backend.cluster.ring import RingLinks
from backend.planning.channels.types import GIVES, READS, Held, LayerType, lacked
from backend.planning.channels.units import ChannelUnit


class ExchangeSeconds(NamedTuple):
    """Of one update: within forwards, within backwards, and of sums of gradients, which an update
    needs and a backward may hide."""

    forward: float = 0.0
    backward: float = 0.0
    sums: float = 0.0

    def plus(self, other: "ExchangeSeconds") -> "ExchangeSeconds":
        return ExchangeSeconds(*(a + b for a, b in zip(self, other, strict=True)))


@dataclass(frozen=True)
class StageReplicas:
    """Replicas of a stage that work in step.

    parts             of all samples and channels what each takes
    speeds            of their devices
    links             those that they exchange over
    num_microbatches  of an update
    num_rounds        in so many forwards and as many backwards they compute them together
    """

    parts: tuple[float, ...]
    speeds: tuple[float, ...]
    links: RingLinks
    num_microbatches: int
    num_rounds: int

    def inside(self, unit: ChannelUnit, kind: LayerType) -> ExchangeSeconds:
        """What partial sums cost: of weights' gradients (type I), of the output (II), or of the
        input's gradient (III). Behind partial sums of the output each replica has all samples, and
        what follows computes all of them instead of its part."""
        match kind:
            case LayerType.SAMPLES:
                sums = self.links.seconds(unit.weights) if unit.weights else 0.0
                return ExchangeSeconds(sums=sums)
            case LayerType.INPUTS:
                again = self._again()
                added = self._added(unit.made)
                return ExchangeSeconds(added + again * unit.forward, again * unit.backward)
            case LayerType.OUTPUTS:
                return ExchangeSeconds(backward=self._added(unit.read_back))

    def between(
        self, before: LayerType, behind: LayerType, there: int, back: int
    ) -> ExchangeSeconds:
        """Over a boundary that a microbatch crosses with so many bytes there and back."""
        gives, reads = GIVES[before], READS[behind]
        return ExchangeSeconds(self._moved(gives, reads, there), self._moved(reads, gives, back))

    def step(
        self, before: tuple[ChannelUnit, LayerType] | None, unit: ChannelUnit, kind: LayerType
    ) -> ExchangeSeconds:
        """What a unit of this type adds behind another. Where it is not joined to that, tensors
        pass by samples; so they come into a stage."""
        inside = self.inside(unit, kind)
        if before and unit.is_joined:
            there, back = before[0].handed, unit.read_back
            return inside.plus(self.between(before[1], kind, there, back))
        entered = self.between(LayerType.SAMPLES, kind, unit.read, unit.read_back)
        return inside.plus(entered).plus(self.last(*before) if before else ExchangeSeconds())

    def last(self, unit: ChannelUnit, kind: LayerType) -> ExchangeSeconds:
        """What handing on by samples takes, as out of a stage."""
        return self.between(kind, LayerType.SAMPLES, unit.handed, unit.handed_back)

    def in_a_run(
        self, unit: ChannelUnit, kind: LayerType, channels: tuple[float, ...]
    ) -> ExchangeSeconds:
        """What a run exchanges for a layer of which each has its part of `channels`: it gathers
        all rows, or all columns of its own ones, and adds partial sums up on all; tensors come
        and go by samples (workers/runtime/compute/channels)."""
        rows, columns = (1 - min(each) for each in (self.parts, channels))
        read, given = self._gathered(rows, unit.read), self._gathered(rows, unit.made)
        match kind:
            case LayerType.SAMPLES:
                return ExchangeSeconds()
            case LayerType.INPUTS:
                back = self._gathered(columns, unit.read_back)
                return ExchangeSeconds(read + self._added(unit.made), given + back)
            case LayerType.OUTPUTS:
                there = self._gathered(columns, unit.made)
                return ExchangeSeconds(read + there, given + self._added(unit.read_back))

    def sent_in_a_run(self, unit: ChannelUnit, kind: LayerType) -> float:
        """Bytes that all of them send for that, per update."""
        match kind:
            case LayerType.SAMPLES:
                return 0.0
            case LayerType.INPUTS:
                there, back = unit.read + 2 * unit.made, unit.made + unit.read_back
            case LayerType.OUTPUTS:
                there, back = unit.read + unit.made, unit.made + 2 * unit.read_back
        return (len(self.parts) - 1) * self.num_microbatches * (there + back)

    @cached_property
    def _different(self) -> frozenset[tuple[float, float]]:
        """Parts with the speeds of those that take them: thousands of replicas may be alike."""
        return frozenset(zip(self.parts, self.speeds, strict=True))

    @property
    def _together(self) -> float:
        """Microbatches of a round."""
        return self.num_microbatches / self.num_rounds

    def _added(self, num_bytes: int) -> float:
        summed = num_bytes * self._together
        return self.num_rounds * self.links.seconds(summed) if summed else 0.0

    def _gathered(self, lacked: float, num_bytes: int) -> float:
        """Everything of a round, of which a replica lacks this share."""
        return self.num_rounds * self.links.receiving(lacked * num_bytes * self._together)

    def _moved(self, has: Held, needs: Held, num_bytes: int) -> float:
        """By the replica that lacks most."""
        share = max(lacked(has, needs, part) for part, _ in self._different)
        return self.num_rounds * self.links.receiving(share * num_bytes * self._together)

    def _again(self) -> float:
        """How many times as long as of one microbatch an update computes what each has to itself
        of others' samples."""
        return self.num_microbatches * max((1 - part) / speed for part, speed in self._different)

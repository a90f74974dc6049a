"""Seconds that the replicas of a stage exchange per update, for given types of its layers."""

from dataclasses import dataclass
from functools import cached_property
from itertools import product
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
        return ExchangeSeconds(
            self.forward + other.forward, self.backward + other.backward, self.sums + other.sums
        )


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
        all rows, passes rows on as columns and back, and adds up partial sums of own rows; tensors
        come and go by samples (workers/runtime/compute/channels)."""
        rows = 1 - min(self.parts)
        pairs = list(zip(self.parts, channels, strict=True))
        passed = max(max(row * (1 - column), column * (1 - row)) for row, column in pairs)
        match kind:
            case LayerType.SAMPLES:
                return ExchangeSeconds()
            case LayerType.INPUTS:
                of_read, of_made = passed, rows
            case LayerType.OUTPUTS:
                of_read, of_made = rows, passed
        made = self._gathered(of_made, unit.made)
        there, back = (self._gathered(of_read, each) for each in (unit.read, unit.read_back))
        return ExchangeSeconds(there + made, made + back)

    def sent_in_a_run(self, unit: ChannelUnit, kind: LayerType) -> float:
        """Bytes that all of them send for that, per update. Of what is gathered or added up each
        of the others is sent every row; of what is passed on as columns the row but for a part."""
        replicas = len(self.parts)
        match kind:
            case LayerType.SAMPLES:
                return 0.0
            case LayerType.INPUTS:
                gathered, passed = 2 * unit.made, unit.read + unit.read_back
            case LayerType.OUTPUTS:
                gathered, passed = unit.read + unit.read_back, 2 * unit.made
        return (replicas - 1) * self.num_microbatches * (gathered + passed / replicas)

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

    def _gathered(self, share: float, num_bytes: int) -> float:
        """Of all microbatches of a round the replica that takes or gives most has this share to
        move."""
        return self.num_rounds * self.links.receiving(share * num_bytes * self._together)

    def _moved(self, has: Held, needs: Held, num_bytes: int) -> float:
        """By the replica that lacks most."""
        share = self._most_lacked[has, needs]
        return self.num_rounds * self.links.receiving(share * num_bytes * self._together)

    @cached_property
    def _most_lacked(self) -> dict[tuple[Held, Held], float]:
        """The largest share that a replica lacks of what it needs."""
        return {
            (has, needs): max(lacked(has, needs, part) for part, _ in self._different)
            for has, needs in product(Held, Held)
        }

    def _again(self) -> float:
        """How many times as long as of one microbatch an update computes what each has to itself
        of others' samples."""
        return self.num_microbatches * max((1 - part) / speed for part, speed in self._different)

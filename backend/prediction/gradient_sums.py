"""How the replicas of a stage sum their gradients: in buckets that travel round a ring while the
backward still goes on."""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from backend.cluster.ring import RingLinks
from backend.pipeline.actions import Flow
from backend.pipeline.links import SumPart
from backend.planning.codec_of_sums import CodecOfSums
from backend.planning.rounded_sums import RoundedSums
from backend.planning.thresholds import Thresholds
from backend.profiles.coding_speed import CodingSpeed
from backend.profiles.layer import LayerSums
from backend.profiles.profile import Profile
from backend.profiles.state_precision import FULL

BUCKET_BYTES = 4 * 2**20
"""Of a bucket of gradients as ranks send it. Long enough to use the link, short enough to start
early (torch's own default is 25 MiB with a first bucket of 1; on gloo 4 MiB were as fast and
started earlier)."""
KEPT = 256
"""Stages whose buckets are remembered: a search asks for the same stages in other plans."""


@dataclass(frozen=True, slots=True)
class StageSums:
    """What the replicas of each stage send to sum gradients of so many bytes, whole or by `codec`,
    coded at `speed` (None: not known) on devices of these `paces`. What thresholds send is as
    expected: between two of them it is more or less, and which tensors are so small that they go
    whole is not known here."""

    stage_bytes: tuple[float, ...]
    codec: CodecOfSums | None = None
    speed: CodingSpeed | None = None
    paces: tuple[float, ...] = ()

    @classmethod
    def of(
        cls,
        stage_bytes: tuple[float, ...],
        codec: CodecOfSums | None,
        profile: Profile,
        paces: tuple[float, ...],
    ) -> "StageSums":
        """With the speed at which the profiled device codes them."""
        if not isinstance(codec, RoundedSums):
            return cls(stage_bytes, codec)
        return cls(stage_bytes, codec, profile.coding_speed(codec.numbers, Flow.GRADIENT), paces)

    def sent(self, stage: int, members: int) -> float:
        """Bytes of one of `members`: 2 (r-1)/r |w|, or what it gives to each other one."""
        if self.codec is None:
            return 2 * (members - 1) / members * self.stage_bytes[stage]
        return (members - 1) * self._given(stage, self.codec)

    def seconds(self, stage: int, over: RingLinks) -> float:
        """Of a sum of all at once; by a codec each gathers what all give."""
        num_bytes = self.stage_bytes[stage]
        if self.codec is None:
            return over.seconds(num_bytes)
        fixed, per_byte = self._coding(stage, over.members)
        given = over.members * self._given(stage, self.codec)
        return over.seconds(given, 1) + fixed + per_byte * num_bytes

    def pieces(
        self, stage: int, part: LayerSums, backward: float, over: RingLinks, bucket_bytes: int
    ) -> tuple[SumPart, ...]:
        """The parts of a sum: buckets, as a backward of so many seconds fills them; or all at its
        end, where what goes is chosen when all gradients are there."""
        if self.codec is None:
            return pieces(part, backward, over, bucket_bytes)
        if isinstance(self.codec, Thresholds):
            return (SumPart(0.0, self.seconds(stage, over)),)
        share, coding = self.codec.sent_share(FULL), self._coding(stage, over.members)
        return rounded_pieces(part, backward, over, bucket_bytes, share, coding)

    def _given(self, stage: int, codec: CodecOfSums) -> float:
        return codec.sent_share(FULL) * self.stage_bytes[stage]

    def _coding(self, stage: int, members: int) -> tuple[float, float]:
        """Seconds in which a replica rounds its own gradients and reads those of all, whatever
        their size and per byte of them; 0 where that is not known."""
        speed = self.speed
        if speed is None:
            return 0.0, 0.0
        fixed = speed.encode + members * speed.decode
        per_byte = speed.encode_per_byte + members * speed.decode_per_byte
        return fixed / self.paces[stage], per_byte / self.paces[stage]


@lru_cache(KEPT)
def pieces(
    part: LayerSums, backward: float, over: RingLinks, bucket_bytes: int
) -> tuple[SumPart, ...]:
    """The buckets of a stage's layers, as a backward of so many seconds fills them; with the last
    one travels the loss."""
    before, sizes = _filled(part, backward, bucket_bytes)
    return tuple(map(SumPart, before, over.seconds_of_each(sizes).tolist()))


@lru_cache(KEPT)
def rounded_pieces(
    part: LayerSums,
    backward: float,
    over: RingLinks,
    bucket_bytes: int,
    share: float,
    coding: tuple[float, float],
) -> tuple[SumPart, ...]:
    """The same of buckets of which a `share` of the bytes goes to each other one. Their `coding`
    counts as a part of their way; the loss is summed behind them."""
    before, sizes = _filled(part, backward, bucket_bytes)
    fixed, per_byte = coding
    seconds = over.seconds_of_each(over.members * share * sizes, 1) + fixed + per_byte * sizes
    seconds[-1] += over.seconds(FULL)
    return tuple(map(SumPart, before, seconds.tolist()))


def _filled(
    part: LayerSums, backward: float, bucket_bytes: int
) -> tuple[list[float], NDArray[np.float64]]:
    """How long before the end of the backward each bucket is full, and its bytes."""
    left, sizes = zip(*part.buckets(bucket_bytes), strict=True)
    before = backward * np.array(left) / part.backward if part.backward else np.zeros(len(left))
    return before.tolist(), np.array(sizes, dtype=np.float64)
